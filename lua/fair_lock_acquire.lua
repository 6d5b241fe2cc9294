-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take the fair lock, take it deeper, or make its lease longer; or queue for it, or say that one still waits.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms field lease_ms want wait_ms [tag]
--      want     the hold count wanted, absolute: a repeated command changes nothing
--      wait_ms  what the waiter adds to the end of a predecessor of Redisson's; 0: do not queue
--      tag      the key of what the holder may tell of itself; who asks for it wants to know
-- reply {1, fresh}                           held by this field, with at least this count and this lease; fresh is 1 when it was free
--       {-1}                                 want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}   not now, at this time of the server. pttl_ms: after so long it is worth to
--                                            ask again, for the head of the queue; -1 for the others. A try is told the lease.
--                                            When nobody holds it, holder is the head of the queue, and count 0. tag: not looked at.
--
-- Keeps: a lock that is free is taken by the head of its queue alone. Who queues stands in both of Redisson's keys or in none, at
-- the tail, and keeps its place while it asks. The lease is judged before anything is written; the place may be refused, as at
-- maxmemory, and then nothing is written but that the dead are gone. The message is last and its refusal is no failure.
local field, lease, want, waits = ARGV[5], string.find(ARGV[6], '^%d+$') and tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
if not lease or lease < 1 or lease > 1e11 or not want or want < 1 or not waits then
  return redis.error_reply('HIRELOCK bad lease time, hold count or wait')
end

local holder = call('HGETALL', key)
for i = 1, #holder, 2 do
  if holder[i] == field then
    if call('PTTL', key) < lease then call('PEXPIRE', key, ARGV[6]) end
    local more = want - (tonumber(holder[i + 1]) or 0)
    if more > 0 then call('HINCRBY', key, field, more) end
    return {1, 0}
  end
end
if want > 1 then return {-1} end

local is_free, head, hint = not holder[1], call('LINDEX', queue, 0), -1
local now, time

local function take()
  call('HSET', key, field, ARGV[7])
  local expiry = redis.pcall('PEXPIRE', key, ARGV[6])
  if expiry ~= 1 then
    call('DEL', key)
    return expiry
  end
  if head then
    leave(field, now + math.max(lease, 2 * stand))
  else
    redis.pcall('DEL', ends, signs)
  end
  return {1, 1}
end

if is_free and not head then return take() end
now, time = now_ms()
if is_free and head == field then return take() end

-- Not each who asks while the head is on its way to a free lock, or who asks again while it is held; but twice while a place
-- stands, so that the end of a head that lives is moved on before it comes.
local is_queued, looks = call('ZSCORE', ends, field), false
if is_free or is_queued then
  local last = tonumber(redis.pcall('HGET', signs, 'look') or 0) or 0
  looks = now - last >= math.min(grace, stand) / (is_free and 10 or 2)
end
if is_free and not looks then hint = grace end -- somebody has just looked: the head is dead by then, or has it
if looks then
  head, hint = look(field, is_free, now)
  if is_free and (not head or head == field) then return take() end
end

if waits > 0 and not is_queued then
  local last = call('LINDEX', queue, -1)
  local from = now + 2 * stand
  if last then
    from = math.max(now, tonumber(call('ZSCORE', ends, last) or now))
    local sign = redis.pcall('HGET', signs, last)
    from = from + (type(sign) == 'string' and string.find(sign, ':', 1, true) and 1 or waits)
  end
  call('ZADD', ends, text(from), field)
  local length = redis.pcall('RPUSH', queue, field)
  if type(length) ~= 'number' then
    call('ZREM', ends, field)
    return length
  end
  head = head or field
elseif is_queued and head == field then
  hold_place(field, now, true)
end
if waits > 0 or is_queued then note(field, text(now) .. ':' .. ARGV[3]) end

if is_free then
  if looks then redis.pcall(publish, channel_of(head), '0') end
  return {0, hint, time[1], time[2], head, '0'}
end
local left = call('PTTL', key)
if waits > 0 and head ~= field then left = -1 end
local tag = ARGV[9] and redis.pcall('GET', ARGV[9])
return {0, left == 0 and 1 or left, time[1], time[2], holder[1], holder[2], type(tag) == 'string' and tag or nil}
