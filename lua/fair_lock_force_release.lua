-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the fair lock, publish to the head of its queue, and tell the holder's client.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms mailbox
-- reply {1[, again_ms]}   there was a lock; again_ms: its head does not listen. A release of any
--                         field (fair_lock_release) after so long passes it over if it is dead
--       {0}               there was none
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
local is_told, again_ms = pcall(tell_head)
tell_holders(fields, ARGV[5], publish)
return {1, is_told and again_ms and text(again_ms) or nil}
