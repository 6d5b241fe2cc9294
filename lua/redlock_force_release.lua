-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the lock of redlock_acquire at one server, and wake the waiters.
--
-- KEYS name
-- ARGV channel publish
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: a key that is no lock stays: one of another type, or without an expiry, which each lock
-- has. The message is last and its refusal is no failure: the key is gone, and waiters poll.
local name, channel, publish = KEYS[1], ARGV[1], ARGV[2]
-- include no_lock
if not redis.call('GET', name) then return {0} end
if redis.call('PTTL', name) == -1 then return no_lock('a text without an expiry') end
redis.call('DEL', name)
redis.pcall(publish, channel, '0')
return {1}
