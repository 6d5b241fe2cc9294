-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the lock, and wake the waiters.
--
-- KEYS name
-- ARGV channel publish
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: a key that is no lock stays. The message is last and its refusal is no failure: the key is
-- gone, and waiters poll.
local name, channel, publish = KEYS[1], ARGV[1], ARGV[2]
-- include force
local fields
-- include fields
local refusal = no_force(fields)
if refusal then return refusal end
if redis.call('DEL', name) == 0 then return {0} end
redis.pcall(publish, channel, '0')
return {1}
