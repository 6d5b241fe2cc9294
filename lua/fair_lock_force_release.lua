-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take the fair lock from whoever holds it, and tell the head of its queue.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: the key is gone whatever is refused of the rest; waiters poll.
if call('DEL', key) == 0 then return {0} end
pcall(tell_head)
return {1}
