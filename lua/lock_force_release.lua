-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take the lock from whoever holds it, and wake the waiters.
--
-- KEYS name
-- ARGV channel publish
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: the message is last and its refusal is no failure: the key is gone, and waiters poll.
if redis.call('DEL', KEYS[1]) == 0 then return {0} end
redis.pcall(ARGV[2], ARGV[1], '0')
return {1}
