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
-- reply {0[, again_ms]}            this field holds nothing, and queues no more
--       {1, '', -1[, again_ms]}    done, now or by an earlier copy that left the key for its
--                                  minimum time; again_ms: the lock is free, and its head does not
--                                  listen. This command after so long passes it over if it is dead
--
-- Keeps: works at maxmemory (DEL goes first). What is done to the queue once the key is gone may
-- be refused: that is no failure of the release. A head that leaves while the lock is free
-- publishes to the next head; so does a command that finds nothing of its field.
-- include fair
local field, want, lease_ms, rest_ms = unpack(ARGV, 5)
want = tonumber(want)
local count = call('HGET', name, field)

local function step_out()
  local is_head, is_queued = call('LINDEX', queue, 0) == field, call('ZSCORE', ends, field)
  local next = is_head and call('LINDEX', queue, 1)
  if is_head or is_queued then leave(field) end
  if next then prolong(next, (now_ms())) end
  if (is_head or not is_queued) and call('EXISTS', name) == 0 then return tell_head() end
end

if not count then
  local is_out, again_ms = pcall(want == 0 and step_out or function() end)
  return {0, is_out and again_ms and text(again_ms) or nil}
end
count = tonumber(count) or 0 -- another program may have written any value

if want > 0 or rest_ms ~= '0' then
  -- include levels
  return leave_levels(name, field, count, want, lease_ms, rest_ms)
end
call('DEL', name)
local is_told, again_ms = pcall(tell_head)
return {1, '', -1, is_told and again_ms and text(again_ms) or nil}
