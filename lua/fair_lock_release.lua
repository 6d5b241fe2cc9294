-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Let go of the fair lock, or of some of its levels, and tell the head of its queue; also what a wait sends that is over, for it
-- stands in the queue.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms field want lease_ms rest_ms
--      want         the hold count that is left, absolute; 0 ends the hold
--      lease_ms     of want > 0: the lease goes on for at least so long
--      rest_ms      of want = 0: 0 deletes the key; else it rests for so long, with count 0 and nobody inside
-- reply {0}            this field holds nothing, and queues no more
--       {1, '', -1}    done, now or by an earlier copy that left the key resting
--
-- Keeps: works at maxmemory (DEL goes first, PEXPIRE before HINCRBY). What is done to the queue once the key is gone may be
-- refused: that is no failure of the release. Who leaves as the head of a lock that is free tells the next.
local field, want = ARGV[5], tonumber(ARGV[6])
local count = call('HGET', key, field)

local function step_out()
  local was_head = call('LINDEX', queue, 0) == field
  leave(field)
  if was_head and call('EXISTS', key) == 0 then tell_head() end
end

if not count then
  if want == 0 then pcall(step_out) end
  return {0}
end
count = tonumber(count) or 0 -- a stranger may have written anything

if want > 0 then
  call('PEXPIRE', key, math.max(call('PTTL', key), tonumber(ARGV[7])))
  if count > want then call('HINCRBY', key, field, want - count) end
elseif tonumber(ARGV[8]) > 0 then
  call('PEXPIRE', key, ARGV[8])
  if count > 0 then call('HINCRBY', key, field, -count) end
else
  call('DEL', key)
  pcall(tell_head)
end
return {1, '', -1}
