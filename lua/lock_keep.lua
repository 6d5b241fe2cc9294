-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- May this client keep the lock for its own next owner? A renewal that also counts other waiters.
--
-- KEYS name
-- ARGV field lease_ms channel queue own_channel numsub
-- reply {count, waiting}   the count in Redis, -1 when it is gone; how many wait: in the queue, and
--                          of Redisson's
--
-- Keeps: no step shortens an expiry; and one is always written, so that a server that takes no
-- writes is noticed. If an ACL forbids the count, the answer is that a waiter is there.
local name = KEYS[1]
local field, lease_ms, channel, queue, own_channel, numsub = unpack(ARGV)
local count = redis.call('HGET', name, field)
count = tonumber(count or '') or 0
if count < 1 then return {-1, 0} end
redis.call('PEXPIRE', name, math.max(redis.call('PTTL', name), tonumber(lease_ms)))
local queued = redis.pcall('ZCARD', queue)
local listeners = redis.pcall('PUBSUB', numsub, channel, own_channel)
if type(queued) ~= 'number' or listeners.err then return {count, 1} end
return {count, queued + math.max(0, listeners[2] - listeners[4])}
