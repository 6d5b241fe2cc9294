-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the permit_ scripts have in common; it stands before each of them.
--
-- A semaphore is two keys of Redisson's: the name, an integer, how many permits are available (it may be negative); and a
-- sorted set of the permits that are out: a member is an id of 16 bytes, its score the time of its end, in milliseconds of the
-- server's clock.
local NEVER = 922337203685477 -- the score of a permit without an end
local NO_PERMITS = redis.error_reply('WRONGTYPE the key holds no number of permits')

local function text(number)
  return string.format('%.0f', number)
end

local function ids_of(name)
  return (string.find(name, '{', 1, true) and name or '{' .. name .. '}') .. ':timeout'
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time
end

-- Milliseconds written in digits, 0 for no end, as the score of a permit; nil for anything else.
local function end_of(lease, now)
  local ms = string.find(lease, '^%d+$') and tonumber(lease)
  if not ms or ms > 1e11 then return nil end
  return ms == 0 and NEVER or now + ms
end

-- The ids of an argument, where they stand one after the other; nil when they are not whole.
local function split(packed)
  if #packed == 0 or #packed % 16 ~= 0 then return nil end
  local list = {}
  for at = 1, #packed, 16 do list[#list + 1] = string.sub(packed, at, at + 15) end
  return list
end

-- Takes permits back whose time is over; both keys are judged before. How many are available, and how many came back; nil
-- when the name is no number. One range, not a list of ids: Lua could not pass on thousands of them.
local function reclaim(name, ids, now)
  local available = redis.call('GET', name) or '0'
  if not string.find(available, '^-?%d+$') then return nil end
  local expired = redis.call('ZCOUNT', ids, '-inf', text(now))
  if expired > 0 then
    redis.call('ZREMRANGEBYSCORE', ids, '-inf', text(now))
    redis.call('INCRBY', name, expired)
  end
  return tonumber(available) + expired, expired
end

-- Redisson's waiters read how many are there for them, as an int; one that is negative or does not fit would be their end.
local function tell(publish, channel, available)
  if available > 0 then redis.pcall(publish, channel, text(math.min(available, 2147483647))) end
end
