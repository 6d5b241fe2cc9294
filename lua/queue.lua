-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Enters `field` into the queue of the lock `name`, which is held, and tells its holder that a
-- waiter is there. `time` is the answer of TIME. queue_ms of '0': no place. `publish` may be nil: a
-- single server's command. sign_ms: no message reaches this waiter; so its requests are its signs
-- of life, and this one is good for so long. nil or '': it listens.
--
-- Without a clock a client cannot tell an old grant from a new one, so then there is no queue. The
-- first waiter in the queue publishes "w name" to the holder, and so does each waiter that asks
-- again, since a message may be lost. For other waiters the holder knows it already, or learned it
-- with its grant.
-- include sign
local time, added = redis.pcall('TIME'), 0
if time.err then
  time = {'0', '0'}
elseif queue_ms ~= '0' then
  added = redis.pcall('ZADD', queue, 'NX', arrival_at(time), field)
  redis.pcall('PEXPIRE', queue, queue_ms)
end
local tells = added ~= 1 or redis.pcall('ZCARD', queue) == 1
if (sign_ms or '') ~= '' and queue_ms ~= '0' and not time.err then
  redis.pcall('ZADD', queue, sign_until(time, sign_ms), '@' .. field)
end
if tells then
  local client = string.match(holder, '^(.*):[^:]*$')
  if client then redis.pcall(publish or 'PUBLISH', mailbox .. client, 'w ' .. name) end
end
