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
--   hirelock_fair:{name}           hash, the signs of life. field -> "asked:stand:added" for a
--                                  waiter of ours: when it asked last, how long its place stands,
--                                  and what it has added to the ends behind it. field -> "since"
--                                  for one of Redisson's without a subscriber.
--                                  "look" -> when the queue was looked through last. All in ms.
-- Each waiter has a channel, redisson_lock__channel:{name}:<field>, and gets the message 0 when it
-- is the head of a lock that is free.
--
-- A waiter of Redisson's adds its wait to the end of the member before it. It subtracts that wait
-- from all other ends on its turn, and from those behind it when it gives up. A waiter of ours asks
-- again and again, and moves its own end on alone; so no turn of ours writes the ends of others.
-- Right behind one of Redisson's it adds a wait as these do, for the other will subtract one. When
-- it goes, that is the next waiter's of ours; if the next one is Redisson's, it is taken back. All
-- ends behind are written only then, as at each turn of Redisson's, and if a waiter of Redisson's
-- that lives has waited so long that its end comes.
-- include braces
-- include clock
local WAIT, CHUNK, CHUNKS = 300000, 16, 64 -- WAIT: the default of Redisson
local call, name, slot = redis.call, KEYS[1], braced(KEYS[1])
local publish, numsub, stand_ms, grace_ms = unpack(ARGV, 1, 4)
local stand, grace = tonumber(stand_ms), tonumber(grace_ms)
local queue, ends = 'redisson_lock_queue:' .. slot, 'redisson_lock_timeout:' .. slot
local signs = 'hirelock_fair:' .. slot

local function channel_of(field)
  return 'redisson_lock__channel:' .. slot .. ':' .. field
end

-- Of a sign of ours: when its waiter asked, how long its place stands, what it has added. Of any
-- other, nil.
local function read_sign(sign)
  local asked, stands, added = string.match(type(sign) == 'string' and sign or '',
    '^(%d+):(%d+):?(%d*)$')
  return tonumber(asked), tonumber(stands), tonumber(added) or 0
end

local function write_sign(asked, stands, added)
  return text(asked) .. ':' .. stands .. (added > 0 and ':' .. text(added) or '')
end

local function is_ours(field)
  return read_sign(redis.pcall('HGET', signs, field)) ~= nil
end

-- Without it a waiter of ours looks like one of Redisson's, so a refusal is no failure. PEXPIRE
-- goes first, for a script that has written may go on writing at maxmemory.
local function note(field, sign)
  local lasts = redis.pcall('PEXPIRE', signs, text(10 * stand))
  redis.pcall('HSET', signs, field, sign)
  if lasts == 0 then redis.pcall('PEXPIRE', signs, text(10 * stand)) end
end

-- Adds `by` to the end of this member and of all behind it.
local function move(first, by)
  local rows = call('ZRANGEBYSCORE', ends, '-inf', '+inf', 'WITHSCORES')
  local end_of, is_behind, words = {}, false, {}
  for at = 1, #rows, 2 do end_of[rows[at]] = rows[at + 1] end
  for _, member in ipairs(call('LRANGE', queue, 0, -1)) do
    is_behind = is_behind or member == first
    if is_behind and end_of[member] then
      words[#words + 1] = text(end_of[member] + by)
      words[#words + 1] = member
    end
  end
  for at = 1, #words, 1000 do
    call('ZADD', ends, 'XX', unpack(words, at, math.min(at + 999, #words)))
  end
end

-- What a member that goes has added is the next one's from now on, if that is ours: the one of
-- Redisson's before them may still subtract its wait, if there is one. Else it is taken back, but
-- makes no end come soon.
local function hand_on(added, next, is_head)
  if added == 0 or not next then return end
  local asked, stands, own = read_sign(redis.pcall('HGET', signs, next))
  local now = now_ms()
  local own_end = tonumber(call('ZSCORE', ends, next) or now)
  if not asked then
    local by = math.min(added, own_end - now - 2 * stand)
    if by > 0 then move(next, -by) end
    return
  end
  redis.pcall('HSET', signs, next, write_sign(asked, stands, own + added))
  local least = now + 2 * stand + own + added
  if not is_head and own_end < least then redis.pcall('ZADD', ends, 'XX', text(least), next) end
end

-- Removes members. is_all: the queue is gone then. (While a slot moves away, no command may look
-- for a key that is gone.)
local function drop(gone, is_all)
  for _, field in ipairs(gone) do call('LREM', queue, 1, field) end
  call('ZREM', ends, unpack(gone))
  if is_all then
    redis.pcall('DEL', ends, signs)
  else
    redis.pcall('HDEL', signs, unpack(gone))
  end
end

-- Leaves the queue. What maxmemory may refuse comes last.
local function leave(field)
  local first = call('LRANGE', queue, 0, 1)
  local _, _, added = read_sign(redis.pcall('HGET', signs, field))
  local next = first[1] == field and first[2]
  if added > 0 and not next then
    local members = call('LRANGE', queue, 0, -1)
    for i, member in ipairs(members) do next = member == field and members[i + 1] or next end
  end
  drop({field}, not first[2] and (not first[1] or first[1] == field))
  hand_on(added, next, first[1] == field)
end

-- This member of Redisson's is the head, or will be at that time: if its end comes soon then, its
-- wait begins anew. Else Redisson's clients would drop it, though it lives.
local function prolong(member, from)
  if is_ours(member) then return end
  local own_end = tonumber(call('ZSCORE', ends, member) or from + stand)
  if own_end >= from + stand then return end
  move(member, from + WAIT - own_end)
end

local function is_overdue(field, now)
  return now >= tonumber(call('ZSCORE', ends, field) or now + 1)
end

-- Is this member dead? And if it is only suspected, for how many ms is it spared? heard: the number
-- of subscribers to its channel, false when that is unknown. is_due: it is the head of a lock that
-- is free. A waiter of Redisson's without a subscriber may be about to reconnect, and would not
-- queue anew: while the lock is held, sparing it delays no other waiter.
local function judge(field, sign, heard, is_free, is_due, now)
  local asked, stands = read_sign(sign)
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

-- Looks at the members from place seen.kept on, and drops the dead, in a row or not. False: there
-- is no more to be looked at, for one of them lives, or the queue ends here.
local function look_at_some(seen, asker, is_free, now)
  local fields = call('LRANGE', queue, seen.kept, seen.kept + CHUNK - 1)
  local channels, gone, heirs, added = {}, {}, {}, 0
  if not fields[1] then return false end
  for i, field in ipairs(fields) do channels[i] = channel_of(field) end
  local listeners = redis.pcall('PUBSUB', numsub, unpack(channels))
  local known = redis.pcall('HMGET', signs, unpack(fields))
  local lives, kept = false, seen.kept

  for i, field in ipairs(fields) do
    local heard, is_dead, spared = not listeners.err and listeners[2 * i], false, false
    local sign, is_due = not known.err and known[i], not seen.head and (is_free or not heard)
    if field == asker then
      seen.is_before = false
    else
      is_dead, spared = judge(field, sign, heard, is_free, is_due, now)
    end
    if is_dead then
      local _, _, its_own = read_sign(sign)
      gone[#gone + 1], added = field, added + its_own
    else
      if added > 0 then heirs[#heirs + 1], added = {added, field, kept == 0}, 0 end
      kept, lives = kept + 1, lives or not spared
      if seen.is_before then
        seen.hint = spared and seen.hint >= 0 and math.max(seen.hint, spared) or -1
      end
      if not seen.head then seen.head, seen.spared, seen.heard = field, spared, heard end
    end
  end
  if gone[1] then
    seen.is_gone = kept == 0 and not call('LINDEX', queue, #fields)
    drop(gone, seen.is_gone)
    for _, heir in ipairs(heirs) do hand_on(unpack(heir)) end
    local heir = added > 0 and not seen.is_gone and call('LINDEX', queue, kept)
    hand_on(added, heir, kept == 0)
  end
  seen.kept = kept
  return not lives and not seen.is_gone
end

-- Drops the dead up to the first member that lives, and those a little behind it: all that died
-- together go together. Returns the head; in how many ms those before the asker are over if none of
-- them gives a sign of life, -1 when one lives; and for how many ms the head is spared, if it is.
local function look(asker, is_free, now)
  local seen, chunks, is_more = {kept = 0, hint = 0, is_before = true}, 0, true
  local first = call('LINDEX', queue, 0)
  note('look', text(now))
  while is_more and chunks < CHUNKS do
    is_more, chunks = look_at_some(seen, asker, is_free, now), chunks + 1
  end
  if is_more then redis.pcall('HDEL', signs, 'look') end -- the next request goes on
  -- A head that stood there before, and does not come for a free lock, has had its time.
  local is_new = seen.head ~= first
  if seen.head and seen.heard ~= 0 and (is_new or not is_free) then prolong(seen.head, now) end
  local head = seen.head or not seen.is_gone and call('LINDEX', queue, 0)
  return head, seen.hint == 0 and 1 or seen.hint, seen.spared
end

-- The lock is free now: publishes that to the head. If the head is not subscribed, drops the dead
-- members, and publishes to the new head. Returns for how many ms a head is spared that does not
-- listen: who looks again then passes it over.
local function tell_head()
  local head = call('LINDEX', queue, 0)
  if not head or redis.pcall(publish, channel_of(head), '0') ~= 0 then return end
  local next, _, spared = look('', true, (now_ms()))
  if next and next ~= head then redis.pcall(publish, channel_of(next), '0') end
  return next and spared or nil
end
