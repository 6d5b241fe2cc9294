-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- May the lock be kept by this client for its own next owner? A renewal that tells who else waits.
--
-- KEYS name
-- ARGV field lease_ms channel queue own_channel numsub
-- reply {count, waiting}   the count in Redis, -1 when it is gone; how many wait: in the queue, and of Redisson's
--
-- Keeps: no step shortens an expiry; and one is always written, so that a server that takes no writes is heard. What cannot be counted (by ACL) counts as somebody.
local count = redis.call('HGET', KEYS[1], ARGV[1])
count = tonumber(count or '') or 0
if count < 1 then return {-1, 0} end
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
local queued, listeners = redis.pcall('ZCARD', ARGV[4]), redis.pcall('PUBSUB', ARGV[6], ARGV[3], ARGV[5])
if type(queued) ~= 'number' or listeners.err then return {count, 1} end
return {count, queued + math.max(0, listeners[2] - listeners[4])}
