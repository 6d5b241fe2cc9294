-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire the fair lock, reenter it, or extend its lease; or queue for it, or renew the place in
-- the queue.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms field lease_ms want queues [tag_key]
--      want     the hold count wanted, absolute: a repeated command changes nothing
--      queues   1: takes a place in the queue, or keeps it; 0: does not
--      tag_key  the key of the holder's tag, for a caller that wants to know it
-- reply {1, fresh}                           held by this field, with at least this count and this
--                                            lease; fresh is 1 when it was free
--       {-1}                                 want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}   not now, at this time of the server. pttl_ms:
--                                                   after so long it is worth to
--                                            ask again, for the head of the queue; -1 for the
--                                            others. A try is told the lease.
--                                            When it is free, holder is the head of the queue,
--                                            and count 0. tag: not looked at.
--
-- Keeps: only the head of the queue acquires a free lock. A waiter is in both of Redisson's keys
-- or in none, enters at the tail, and keeps its place while it asks. The lease is
-- judged before anything is written; the place may be refused, as at maxmemory, and then nothing
-- is written but that the dead are gone. The message is last and its refusal is no failure.
-- include fair
local field, lease_ms, want, queues, tag_key = unpack(ARGV, 5)
if queues ~= '0' and queues ~= '1' then return redis.error_reply('HIRELOCK bad wish to queue') end
-- include lease

local left, fields = call('PTTL', name), {}
if left ~= -2 then
  -- include fields
end
for at = 1, #fields, 2 do
  if fields[at] == field then
    call('PEXPIRE', name, math.max(left, lease)) -- always, for a WAIT behind it
    local more = wanted - (tonumber(fields[at + 1]) or 0)
    if more > 0 then call('HINCRBY', name, field, more) end
    return {1, 0}
  end
end
if wanted > 1 then return {-1} end

local is_free, head, hint = left == -2, call('LINDEX', queue, 0), -1
local now, time

-- The next member is the head of a lock that is held, as long as this lease at least.
local function take()
  call('HSET', name, field, want)
  local expiry = redis.pcall('PEXPIRE', name, lease_ms)
  if expiry ~= 1 then
    call('DEL', name)
    return expiry
  end
  if not head then
    redis.pcall('DEL', ends, signs)
    return {1, 1}
  end
  local next = call('LINDEX', queue, 1)
  leave(field)
  if next then prolong(next, now + math.max(lease, 2 * stand)) end
  return {1, 1}
end

if is_free and not head then return take() end

local holder, count
if not is_free then
  -- include holder
end
now, time = now_ms()
if is_free and head == field then return take() end

-- Not every request looks through the queue while the head is on its way to a free lock, or while
-- the lock is held; but two do in the time that a place stands, so that the end of a living head is
-- moved on before it comes.
local own_end, looks = call('ZSCORE', ends, field), false
if is_free or own_end then
  local last = tonumber(redis.pcall('HGET', signs, 'look') or 0) or 0
  looks = now - last >= math.min(grace, stand) / (is_free and 10 or 2)
end
-- Another request has just looked: by then the head is dead, or holds the lock.
if is_free and not looks then hint = grace end
if looks then
  head, hint = look(field, is_free, now)
  if is_free and (not head or head == field) then return take() end
end

local _, _, added = read_sign(own_end and redis.pcall('HGET', signs, field))
local is_new = queues == '1' and not own_end
if is_new then
  local last, from = call('LINDEX', queue, -1), now + 2 * stand
  local last_end = tonumber(last and call('ZSCORE', ends, last) or now)
  added = last and not is_ours(last) and WAIT or 0
  from = math.max(from, last_end + 1) + added
  call('ZADD', ends, text(from), field)
  local length = redis.pcall('RPUSH', queue, field)
  if type(length) ~= 'number' then
    call('ZREM', ends, field)
    return length
  end
  head = head or field
elseif own_end then
  -- Behind one of Redisson's with what that will subtract. Not much later for a head, which may die
  -- beside Redisson's clients alone.
  local least = now + stand + (head == field and 0 or added)
  local is_soon = tonumber(own_end) < least
  local is_long = head == field and tonumber(own_end) > least + 2 * stand
  if is_soon or is_long then call('ZADD', ends, 'XX', text(least + stand), field) end
end
if is_new or own_end then
  note(field, write_sign(now, stand_ms, added))
end

if is_free then
  if looks then redis.pcall(publish, channel_of(head), '0') end
  left, holder, count, tag_key = hint, head, '0', nil
elseif queues == '1' and head ~= field then
  left = -1
elseif left == 0 then
  left = 1
end
-- include busy
