-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the fair_ scripts have in common; it stands before each of them.
--
-- KEYS name
-- ARGV publish numsub stand_ms grace_ms ...
--      stand_ms   how long a place stands when its waiter does not ask; Redisson's clients pass a head of ours over after twice that
--      grace_ms   how long a waiter may be without a subscription to its channel, as Redisson's are when they come
--
-- The lock is the hash of any lock. Who waits stands in Redisson's two keys, and in one of ours:
--   redisson_lock_queue:{name}     list: the fields in the order of their arrival
--   redisson_lock_timeout:{name}   sorted set: field -> its end, in ms: Redisson's clients drop a head whose end has come
--   hirelock_fair:{name}           hash, the signs of life. field -> "asked:stand" for a waiter of ours: when it asked last, and
--                                  how long its place stands. field -> "since" for one of Redisson's to which nobody listens.
--                                  "look" -> when the queue was looked through last. All in ms.
-- Each waiter has a channel, redisson_lock__channel:{name}:<field>, and is told 0 when it is the head of a lock that is free.
--
-- The ends are cumulative, as Redisson counts them: who queues adds its wait to the end of the last one, who takes the lock or
-- leaves takes that from all behind. Ours take what the distance to their predecessor is, which comes to the same and lets no
-- error grow; and an end is moved when it is wrong by more than stand_ms only, for each move writes all behind.
local call, key = redis.call, KEYS[1]
local publish, numsub, stand, grace = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local tag = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
local queue, ends, signs = 'redisson_lock_queue:' .. tag, 'redisson_lock_timeout:' .. tag, 'hirelock_fair:' .. tag

local function text(number)
  return string.format('%.0f', number)
end

local function channel_of(field)
  return 'redisson_lock__channel:' .. tag .. ':' .. field
end

local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time
end

-- Without it a waiter of ours looks like one of Redisson's, so a refusal is no failure. PEXPIRE goes first, for a script that has
-- written may go on writing at maxmemory.
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

-- Leaves the queue; the next one's wait then begins at `from`, or where that of this one began.
local function leave(field, from)
  local own_end = call('ZSCORE', ends, field)
  call('LREM', queue, 1, field)
  call('ZREM', ends, field)
  if call('EXISTS', queue) == 0 then
    redis.pcall('DEL', ends, signs)
    return
  end
  redis.pcall('HDEL', signs, field)
  if not own_end then return end
  local before = not from and call('ZREVRANGEBYSCORE', ends, '(' .. own_end, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  from = from or before or now_ms() + math.max(call('PTTL', key), 2 * stand)
  move('(' .. own_end, from - own_end)
end

-- Until when Redisson's clients wait for the head: never so soon that one is dropped that lives; and when the head is the asker,
-- one of ours, not long either, for it may die and leave none of ours behind.
local function hold_place(head, now, is_asker)
  local own_end = tonumber(call('ZSCORE', ends, head) or now + 2 * stand)
  if own_end < now + stand or is_asker and own_end > now + 3 * stand then move('-inf', now + 2 * stand - own_end) end
end

local function is_overdue(field, now)
  return now >= tonumber(call('ZSCORE', ends, field) or now + 1)
end

-- Is this member dead? And if it is only suspected, for how many ms is it spared? heard: how many listen to its channel, false
-- when that is not to be known. is_due: it is the head of a lock that is free. One of Redisson's that nobody hears may be about to
-- connect again, and would not queue anew: as long as the lock is held it costs nobody anything.
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

-- Looks at the first 16 and drops the dead, in a row or not. Returns the head, and in how many ms those before the asker are over
-- if none of them gives a sign of life; -1 when one lives.
local function look(asker, is_free, now)
  local fields, channels = call('LRANGE', queue, 0, 15), {}
  if not fields[1] then return false, -1 end
  for i, field in ipairs(fields) do channels[i] = channel_of(field) end
  local listeners, known = redis.pcall('PUBSUB', numsub, unpack(channels)), redis.pcall('HMGET', signs, unpack(fields))
  note('look', text(now))

  local head, hint, is_before = false, 0, true
  for i, field in ipairs(fields) do
    local heard, is_dead, spared = not listeners.err and listeners[2 * i], false, false
    if field == asker then
      is_before = false
    else
      is_dead, spared = judge(field, not known.err and known[i], heard, is_free, not head and (is_free or not heard), now)
    end
    if is_dead then
      leave(field)
    else
      if not head and not is_free and heard ~= 0 then hold_place(field, now, false) end
      if is_before then hint = spared and hint >= 0 and math.max(hint, spared) or -1 end
      head = head or field
    end
  end
  return head or call('LINDEX', queue, 0), hint == 0 and 1 or hint
end

-- The lock is free now. When its head does not hear it, the dead are dropped, and the one who is the head then is told.
local function tell_head()
  local head = call('LINDEX', queue, 0)
  if not head or redis.pcall(publish, channel_of(head), '0') ~= 0 then return end
  local next = look('', true, (now_ms()))
  if next and next ~= head then redis.pcall(publish, channel_of(next), '0') end
end
