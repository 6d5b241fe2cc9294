-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The common beginning of the renewals of locks and of read locks.
--
-- They run for every hold of every process, so they look up no global twice and ask for the time
-- once: PEXPIREAT costs the server less than PEXPIRE, which becomes one on the way to replicas. A
-- user who may run neither TIME nor PEXPIREAT pays for that only.
local call, pcall, argv, differ = redis.call, redis.pcall, ARGV, {}
local lease, expire, at, now = tonumber(argv[1]), 'PEXPIRE', argv[1], pcall('TIME')
if not now.err then
  expire = 'PEXPIREAT'
  at = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + lease)
end
