-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Turns of a kind whose releases grant to nobody: they tell all, and who asks first has it. Then
-- who releases would take it again before a waiter polls that no message reaches. So such a waiter
-- lines up, in a queue like a lock's; while anyone stands there, all who wait line up, and who is
-- not the first leaves alone what is free. Who hears nothing may publish nothing, either: with what
-- it takes it leaves a mark in the queue, a sign of life of nobody, at which all line up. The
-- script declares these, its last arguments; nil, and nobody lines up:
--   queue     each waiter in it has a sign of life, by which the dead are passed over
--   sign_ms   so long after a request its waiter is taken to live; 0: it does not wait
--   is_deaf   1: no message reaches it
--
-- Keeps: what is refused here (by ACL, at maxmemory) is no failure: then there is no line. At most
-- so many are looked at, and no sign ends the sooner for the queue's expiry.
-- include sign
local LOOKED_AT, is_lined_up = 32, false

-- The first before `field` that lives, and for how many ms; nil: it is this one's turn. bars: only
-- those count for which it is true; nil: all.
local function waiter_before(field, bars)
  local members = queue and redis.pcall('ZRANGE', queue, 0, LOOKED_AT - 1) or {}
  local time = members[1] and redis.pcall('TIME')
  is_lined_up = members[1] ~= nil
  if not time or time.err then return nil end
  for _, member in ipairs(members) do
    if member == field or string.sub(member, 1, 1) == '@' then return nil end
    local ends = redis.pcall('ZSCORE', queue, '@' .. member)
    if type(ends) == 'table' then return nil end
    local left = ends and math.ceil((ends - tonumber(sign_until(time, 0))) / 1000) or 0
    if left <= 0 then
      redis.pcall('ZREM', queue, member, '@' .. member)
    elseif not bars or bars(member) then
      return member, left
    end
  end
end

local function give_sign(member, field)
  local time = redis.pcall('TIME')
  if time.err then return end
  if field then redis.pcall('ZADD', queue, 'NX', arrival_at(time), field) end
  redis.pcall('ZADD', queue, sign_until(time, sign_ms), member)
  local left = tonumber(redis.pcall('PTTL', queue)) or 0
  redis.pcall('PEXPIRE', queue, math.max(left, tonumber(sign_ms)))
end

-- Both behind waiter_before(); and the second behind what is taken.
local function line_up(field)
  if queue and sign_ms ~= '0' and (is_lined_up or is_deaf == '1') then
    give_sign('@' .. field, field)
  end
end

local function take_turn(field)
  if is_lined_up then redis.pcall('ZREM', queue, field, '@' .. field) end
  if queue and sign_ms ~= '0' and is_deaf == '1' then give_sign('@') end
end
