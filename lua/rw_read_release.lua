-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Let go of a read lock, or of some of its levels; also what a wait sends that is over, for it may have got it meanwhile.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish
--      want      the hold count that is left, absolute; 0 ends the hold
--      lease_ms  of want > 0: the lease goes on for at least so long
--      rest_ms   of want = 0: 0 takes the reader out; else it keeps writers out for so long, as a reader of its own that nobody is
-- reply {0}             this field holds nothing, or its lease was over
--       {1, '', -1}     done, now or by an earlier copy that left it resting
--
-- Keeps: looks at other readers only where no more than eight are left: then the lock's expiry becomes about that of the
-- longest of them, and without a living one the lock goes. Else its expiry stays, which is long enough for all. So it costs the
-- same however many there are. Works at maxmemory (DEL and PEXPIRE before SET and HINCRBY). The last one out deletes the lock
-- and says so; the message is last and its refusal is no failure: the key is gone, and waiters poll.
local name, field, want, rest = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local call, pcall, handful, levels = redis.call, redis.pcall, 8, 1000
local prefix = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
local resting = field .. ':rest'
local function hold_of(reader, level) return prefix .. ':' .. reader .. ':rwlock_timeout:' .. level end

local held = call('HMGET', name, 'mode', field, resting)
if not held[2] then
  if held[3] then return {1, '', -1} end
  local level = 1 -- somebody has deleted the lock, which leaves the hold keys
  while level <= levels and call('DEL', hold_of(field, level)) == 1 do
    level = level + 1
  end
  return {0}
end

local function lease_of(reader, holds) -- the longest of its keys; -2: over, and a stranger may have written anything
  local longest = -2
  for level = 1, math.min(tonumber(holds) or 0, levels) do
    longest = math.max(longest, call('PTTL', hold_of(reader, level)))
  end
  return longest
end

local count, left = math.min(tonumber(held[2]) or 0, levels), lease_of(field, held[2])

if want > 0 and left ~= -2 then
  local lease = math.max(left, tonumber(ARGV[3]))
  call('PEXPIRE', name, math.max(call('PTTL', name), lease))
  for level = 1, math.min(want, count) do
    call('SET', hold_of(field, level), '1', 'PX', lease)
  end
  local fewer = want - tonumber(held[2])
  if fewer < 0 then call('HINCRBY', name, field, fewer) end
  for level = want + 1, count do
    call('DEL', hold_of(field, level))
  end
  return {1, '', -1}
end

for level = 1, count do
  call('DEL', hold_of(field, level))
end
if rest > 0 and left ~= -2 then
  call('PEXPIRE', name, math.max(call('PTTL', name), rest))
  call('SET', hold_of(resting, 1), '1', 'PX', rest)
  call('HSET', name, resting, '1')
end
call('HDEL', name, field)

local fields = call('HLEN', name)
local is_free = fields == (held[1] and 1 or 0)
if held[1] == 'read' and not is_free and fields <= handful + 1 then
  local others, longest = pcall('HGETALL', name), -2
  for at = 1, #others, 2 do
    if others[at] ~= 'mode' then longest = math.max(longest, lease_of(others[at], others[at + 1])) end
  end
  is_free = longest == -2 and not others.err
  local pttl = call('PTTL', name)
  if longest > 0 and (pttl < longest or pttl > longest + 100) then call('PEXPIRE', name, longest) end
end
if is_free then
  call('DEL', name)
  pcall(ARGV[6], ARGV[5], '0')
end
return left == -2 and {0} or {1, '', -1}
