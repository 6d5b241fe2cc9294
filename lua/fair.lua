-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the scripts of the fair lock have in common.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms ...
--      stand_ms   how long a place stands when its waiter does not ask; Redisson's clients pass a
--                 head of ours over after twice that
--      grace_ms   how long a waiter may be without a subscription to its channel, as Redisson's are
--                 when they come
--
-- The lock is the hash of any lock. A waiter is in Redisson's two keys, and in one of ours:
--   redisson_lock_queue:{name}     list: the fields in the order of their arrival
--   redisson_lock_timeout:{name}   sorted set: field -> its end, in ms: Redisson's clients drop a
--                                  head whose end has come
--   hirelock_fair:{name}           hash, the signs of life. field -> "asked:stand" for a waiter of
--                                  ours: when it asked last, and
--                                  how long its place stands. field -> "since" for one of
--                                  Redisson's without a subscriber.
--                                  "look" -> when the queue was looked through last. All in ms.
-- Each waiter has a channel, redisson_lock__channel:{name}:<field>, and gets the message 0 when it
-- is the head of a lock that is free.
--
-- The ends are cumulative, as Redisson counts them: a waiter that queues adds its wait to the end
-- of the last one; a waiter that acquires or leaves subtracts its wait from all ends behind it. Our
-- clients subtract the distance to the predecessor, which is the same but lets no error grow. They
-- correct an end only when it is wrong by more than stand_ms, since that writes all ends behind.
-- include braces
-- include clock
local call, name, slot = redis.call, KEYS[1], braced(KEYS[1])
local publish, numsub, stand_ms, grace_ms = unpack(ARGV, 1, 4)
local stand, grace = tonumber(stand_ms), tonumber(grace_ms)
local queue, ends = 'redisson_lock_queue:' .. slot, 'redisson_lock_timeout:' .. slot
local signs = 'hirelock_fair:' .. slot

local function channel_of(field)
  return 'redisson_lock__channel:' .. slot .. ':' .. field
end

-- Without it a waiter of ours looks like one of Redisson's, so a refusal is no failure. PEXPIRE
-- goes first, for a script that has written may go on writing at maxmemory.
local function note(field, sign)
  local lasts = redis.pcall('PEXPIRE', signs, text(10 * stand))
  redis.pcall('HSET', signs, field, sign)
  if lasts == 0 then redis.pcall('PEXPIRE', signs, text(10 * stand)) end
end

-- The ends of all behind `from`, a bound of ZRANGEBYSCORE.
local function move(from, by)
  if math.abs(by) <= stand then return end
  local rows = call('ZRANGEBYSCORE', ends, from, '+inf', 'WITHSCORES')
  for at = 1, #rows, 1000 do
    local words = {}
    for i = at, math.min(at + 999, #rows), 2 do
      words[#words + 1] = text(rows[i + 1] + by)
      words[#words + 1] = rows[i]
    end
    call('ZADD', ends, 'XX', unpack(words))
  end
end

-- Leaves the queue; the next waiter's wait then begins at `from`, or where this one's began. True:
-- the queue is gone. (While a slot moves away, no command may look for a key that is gone.)
local function leave(field, from)
  local own_end, first = call('ZSCORE', ends, field), call('LRANGE', queue, 0, 1)
  call('LREM', queue, 1, field)
  call('ZREM', ends, field)
  if not first[2] and (not first[1] or first[1] == field) then
    redis.pcall('DEL', ends, signs)
    return true
  end
  redis.pcall('HDEL', signs, field)
  if not own_end then return end
  local behind = '(' .. own_end
  local before = not from and
    call('ZREVRANGEBYSCORE', ends, behind, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  from = from or before or now_ms() + math.max(call('PTTL', name), 2 * stand)
  move(behind, from - own_end)
end

-- Until when Redisson's clients wait for the head: late enough that they drop no living head. When
-- the head is the asker, a client of ours, not much later: it may die, and no other client of ours
-- may be in the queue.
local function hold_place(head, now, is_asker)
  local own_end = tonumber(call('ZSCORE', ends, head) or now + 2 * stand)
  local is_soon, is_long = own_end < now + stand, is_asker and own_end > now + 3 * stand
  if is_soon or is_long then move('-inf', now + 2 * stand - own_end) end
end

local function is_overdue(field, now)
  return now >= tonumber(call('ZSCORE', ends, field) or now + 1)
end

-- Is this member dead? And if it is only suspected, for how many ms is it spared? heard: the number
-- of subscribers to its channel, false when that is unknown. is_due: it is the head of a lock that
-- is free. A waiter of Redisson's without a subscriber may be about to reconnect, and would not
-- queue anew: while the lock is held, sparing it delays no other waiter.
local function judge(field, sign, heard, is_free, is_due, now)
  local asked, stands = string.match(sign or '', '^(%d+):(%d+)$')
  if asked then
    local spared = asked + (heard == 0 and math.min(grace, stands) or stands) - now
    return spared <= 0, heard == 0 and spared
  end
  if heard == 0 then
    if not sign then note(field, text(now)) end
    local spared = (tonumber(sign) or now) + grace - now
    return is_free and spared <= 0, spared
  end
  if sign then redis.pcall('HDEL', signs, field) end
  return is_due and is_overdue(field, now), false
end

-- Looks at the first 16 and drops the dead, in a row or not. Returns the head, and in how many ms
-- those before the asker are over if none of them gives a sign of life; -1 when one lives.
local function look(asker, is_free, now)
  local fields, channels = call('LRANGE', queue, 0, 15), {}
  if not fields[1] then return false, -1 end
  for i, field in ipairs(fields) do channels[i] = channel_of(field) end
  local listeners = redis.pcall('PUBSUB', numsub, unpack(channels))
  local known = redis.pcall('HMGET', signs, unpack(fields))
  note('look', text(now))

  local head, hint, is_before, is_gone = false, 0, true, false
  for i, field in ipairs(fields) do
    local heard, is_dead, spared = not listeners.err and listeners[2 * i], false, false
    local sign, is_due = not known.err and known[i], not head and (is_free or not heard)
    if field == asker then
      is_before = false
    else
      is_dead, spared = judge(field, sign, heard, is_free, is_due, now)
    end
    if is_dead then
      is_gone = leave(field)
    else
      if not head and not is_free and heard ~= 0 then hold_place(field, now, false) end
      if is_before then hint = spared and hint >= 0 and math.max(hint, spared) or -1 end
      head = head or field
    end
  end
  head = head or not is_gone and call('LINDEX', queue, 0)
  return head, hint == 0 and 1 or hint
end

-- The lock is free now: publishes that to the head. If the head is not subscribed, drops the dead
-- members, and publishes to the new head.
local function tell_head()
  local head = call('LINDEX', queue, 0)
  if not head or redis.pcall(publish, channel_of(head), '0') ~= 0 then return end
  local next = look('', true, (now_ms()))
  if next and next ~= head then redis.pcall(publish, channel_of(next), '0') end
end
