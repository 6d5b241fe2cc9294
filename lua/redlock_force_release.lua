-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the lock of redlock_acquire at one server, wake the waiters, and tell the holder's
-- client, if the value begins with its id.
--
-- KEYS name
-- ARGV channel publish mailbox
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: a key that is no lock stays: one of another type, or without an expiry, which each lock
-- has. The messages are last and their refusal is no failure: the key is gone, and waiters poll.
local name, channel, publish, mailbox = KEYS[1], unpack(ARGV)
-- include no_lock
local value = redis.call('GET', name)
if not value then return {0} end
if redis.call('PTTL', name) == -1 then return no_lock('a text without an expiry') end
redis.call('DEL', name)
redis.pcall(publish, channel, '0')
local client = string.match(string.sub(value, 1, 36), '^%x+%-%x+%-%x+%-%x+%-%x+$')
if client and mailbox ~= '' then redis.pcall(publish, mailbox .. client, 'l ' .. name) end
return {1}
