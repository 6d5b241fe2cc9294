-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release a read lock, or some of its levels. A wait that is over sends this too, since it may have
-- got the lock meanwhile.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish [queue]
--      want      the hold count that is left, absolute; 0 ends the hold
--      lease_ms  of want > 0: the lease goes on for at least so long
--      rest_ms   of want = 0: 0 takes the reader out; else it keeps writers out for so long, by a
--                field that is no reader's
--      queue     of a wait that is over: where it may have lined up (turns.lua)
-- reply {0}             this field holds nothing, or its lease was over
--       {1, '', -1}     done, now or by an earlier copy that left it for its minimum time
--
-- Keeps: looks at other readers only where no more than eight are left: then the lock's expiry
-- becomes about that of the longest of them, and without a living one the lock goes. Else its
-- expiry stays, which is long enough for all. So it costs the same however many there are. Works
-- at maxmemory (DEL and PEXPIRE before SET and HINCRBY). The last one out deletes the lock and
-- says so; the message is last and its refusal is no failure: the key is gone, and waiters poll.
local field, want, lease_ms, rest_ms, channel, publish, queue = unpack(ARGV)
local call, pcall, HANDFUL = redis.call, redis.pcall, 8
-- include rw
-- include rw_other
want, rest_ms = tonumber(want), tonumber(rest_ms)

local resting, hold = field .. ':rest', hold_of(field)
local held = call('HMGET', name, 'mode', field, resting)
if not held[2] then
  if held[3] then return {1, '', -1} end
  if queue then pcall('ZREM', queue, field, '@' .. field) end
  local level = 1 -- another program has deleted the lock; the hold keys are left
  while level <= LEVELS and pcall('DEL', hold .. level) == 1 do
    level = level + 1
  end
  return {0}
end

local count, left = math.min(tonumber(held[2]) or 0, LEVELS), lease_left(field, held[2])

if want > 0 and left ~= -2 then
  local lease = math.max(left, tonumber(lease_ms))
  call('PEXPIRE', name, math.max(call('PTTL', name), lease))
  for level = 1, math.min(want, count) do
    call('SET', hold .. level, '1', 'PX', lease)
  end
  local fewer = want - tonumber(held[2])
  if fewer < 0 then call('HINCRBY', name, field, fewer) end
  for level = want + 1, count do
    call('DEL', hold .. level)
  end
  return {1, '', -1}
end

for level = 1, count do
  call('DEL', hold .. level)
end
if rest_ms > 0 and left ~= -2 then
  call('PEXPIRE', name, math.max(call('PTTL', name), rest_ms))
  call('SET', hold_of(resting) .. 1, '1', 'PX', rest_ms)
  call('HSET', name, resting, '1')
end
call('HDEL', name, field)

local fields = call('HLEN', name)
local is_free = fields == (held[1] and 1 or 0)
if held[1] == 'read' and not is_free and fields <= HANDFUL + 1 then
  local others, longest, are_seen = pcall('HGETALL', name), -2, true
  for at = 1, #others, 2 do
    local reader, holds = others[at], others[at + 1]
    local left = reader == 'mode' and -2 or other_left(reader, holds)
    are_seen, longest = are_seen and left, math.max(longest, left or -2)
  end
  is_free = are_seen and longest == -2 and not others.err
  local pttl = call('PTTL', name)
  local is_off = pttl < longest or pttl > longest + 100
  if are_seen and longest > 0 and is_off then call('PEXPIRE', name, longest) end
end
if is_free then
  call('DEL', name)
  pcall(publish, channel, '0')
end
return left == -2 and {0} or {1, '', -1}
