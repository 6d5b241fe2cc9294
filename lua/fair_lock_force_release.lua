-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the fair lock, and publish to the head of its queue.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms
-- reply {1}      there was a lock
--       {0}      there was none
--
-- Keeps: a key that is no lock stays. The key is gone whatever is refused of the rest; waiters
-- poll.
-- include fair
-- include force
local fields
-- include fields
local refusal = no_force(fields)
if refusal then return refusal end
if call('DEL', name) == 0 then return {0} end
pcall(tell_head)
return {1}
