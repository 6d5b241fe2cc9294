-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The common part of the permit_ scripts.
--
-- A semaphore is two keys of Redisson's: the name, an integer, how many permits are available (it
-- may be negative); and a sorted set of the permits that are out: a member is an id of 16 bytes,
-- its score the time of its end, in milliseconds of the server's clock. Both have the same expiry,
-- or none: ids without their number would come back as permits that nobody has made.
-- include braces
-- include clock
-- include tell
local NEVER = 922337203685477 -- the score of a permit without an end
local LINGER = 60000 -- those who wait for the end of the last permit ask within it
local NO_PERMITS = redis.error_reply('WRONGTYPE the key holds no number of permits')

local function ids_of(name)
  return braced(name) .. ':timeout'
end

-- Milliseconds written in digits, 0 for no end, as the score of a permit; nil for anything else.
local function end_of(lease, now)
  local ms = string.find(lease, '^%d+$') and tonumber(lease)
  if not ms or ms > 1e11 then return nil end
  return ms == 0 and NEVER or now + ms
end

-- The ids in an argument, one after the other; nil when the last one is cut.
local function split(packed)
  if #packed == 0 or #packed % 16 ~= 0 then return nil end
  local list = {}
  for at = 1, #packed, 16 do list[#list + 1] = string.sub(packed, at, at + 15) end
  return list
end

-- Takes back permits that have expired; checks both keys first. Returns how many are available, and
-- how many came back; nil when the name is no number. One range, not a list of ids: Lua could not
-- pass on thousands of them.
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

local function expire(name, ids, ms)
  redis.pcall('PEXPIRE', name, text(ms))
  redis.pcall('PEXPIRE', ids, text(ms))
end

-- Of a semaphore with a time to live: it stands for `least` ms from now, and until its last permit
-- has ended and those who wait have had their turn.
local function outlive(name, ids, now, least)
  local lives = redis.call('PTTL', name)
  if lives < 0 then return end
  local last = tonumber(redis.call('ZRANGE', ids, -1, -1, 'WITHSCORES')[2])
  local needed = math.max(least, last and last - now + LINGER or 0)
  if needed > lives then
    expire(name, ids, needed)
  elseif redis.call('PTTL', ids) == -1 then
    redis.pcall('PEXPIRE', ids, lives)
  end
end
