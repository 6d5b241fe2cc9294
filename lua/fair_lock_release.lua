-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release the fair lock, or some of its levels, and publish to the head of its queue. A wait that
-- is over sends this too, to leave the queue.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms field want lease_ms rest_ms
--      want         the hold count that is left, absolute; 0 ends the hold
--      lease_ms     of want > 0: the lease goes on for at least so long
--      rest_ms      of want = 0: 0 deletes the key; else the key stays for so long, with count 0
--                   and no holder
-- reply {0}            this field holds nothing, and queues no more
--       {1, '', -1}    done, now or by an earlier copy that left the key for its minimum time
--
-- Keeps: works at maxmemory (DEL goes first). What is done to the queue once the key is gone may
-- be refused: that is no failure of the release. A head that leaves while the lock is free
-- publishes to the next head.
-- include fair
local field, want, lease_ms, rest_ms = unpack(ARGV, 5)
want = tonumber(want)
local count = call('HGET', name, field)

local function step_out()
  local was_head = call('LINDEX', queue, 0) == field
  leave(field)
  if was_head and call('EXISTS', name) == 0 then tell_head() end
end

if not count then
  if want == 0 then pcall(step_out) end
  return {0}
end
count = tonumber(count) or 0 -- another program may have written any value

if want > 0 or rest_ms ~= '0' then
  -- include levels
  return leave_levels(name, field, count, want, lease_ms, rest_ms)
end
call('DEL', name)
pcall(tell_head)
return {1, '', -1}
