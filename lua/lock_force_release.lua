-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the lock, wake the waiters, and tell the holder's client.
--
-- KEYS name
-- ARGV channel publish mailbox
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: a key that is no lock stays. The messages are last and their refusal is no failure: the
-- key is gone, and waiters poll.
local name, channel, publish, mailbox = KEYS[1], unpack(ARGV)
-- include force
local fields
-- include fields
local refusal = no_force(fields)
if refusal then return refusal end
if redis.call('DEL', name) == 0 then return {0} end
redis.pcall(publish, channel, '0')
tell_holders(fields, mailbox, publish)
return {1}
