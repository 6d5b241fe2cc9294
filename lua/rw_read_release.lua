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
-- Keeps: looks at no other reader, so it costs the same however many there are; the lock's expiry stays, which was long enough
-- for all of them. Works at maxmemory (DEL and PEXPIRE before SET and HINCRBY). The last one out deletes the lock and says so;
-- the message is last and its refusal is no failure: the key is gone, and waiters poll.
local name, field, want, rest = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local call, levels = redis.call, 1000
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

local count, left = math.min(tonumber(held[2]) or 0, levels), -2 -- a stranger may have written anything
for level = 1, count do
  left = math.max(left, call('PTTL', hold_of(field, level)))
end

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

local is_last = call('HLEN', name) == (held[1] and 2 or 1)
for level = 1, count do
  call('DEL', hold_of(field, level))
end
if rest > 0 and left ~= -2 then
  call('PEXPIRE', name, is_last and rest or math.max(call('PTTL', name), rest))
  call('SET', hold_of(resting, 1), '1', 'PX', rest)
  call('HSET', name, resting, '1')
  call('HDEL', name, field)
  return {1, '', -1}
end
if is_last then
  call('DEL', name)
  redis.pcall(ARGV[6], ARGV[5], '0')
else
  call('HDEL', name, field)
end
return left == -2 and {0} or {1, '', -1}
