-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many holds of redlock_acquire at once: extend each key that has its value.
--
-- KEYS name...
-- ARGV lease_ms value...      one lease for all, and a value for each name
-- reply {index, -1, ...}      two for each hold that is gone: its position from 1. An empty reply
--                             means that all were renewed.
--
-- Keeps: never creates a key, never shortens an expiry. An expiry is always written, so that the
-- error of a replica, or of a server that takes no writes, is noticed. A key of another type stops
-- no other renewal.
local lease, differ = tonumber(ARGV[1]), {}

for i, name in ipairs(KEYS) do
  local held = redis.pcall('GET', name)
  if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return held
  end
  if held == ARGV[i + 1] then
    redis.call('PEXPIRE', name, math.max(redis.call('PTTL', name), lease))
  else
    differ[#differ + 1] = i
    differ[#differ + 1] = -1
  end
end
return differ
