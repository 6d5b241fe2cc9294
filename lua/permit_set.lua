-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Set how many permits there are, those that are out included.
--
-- KEYS name
-- ARGV count if_new channel publish
--      if_new     1: only if the semaphore is not there yet
-- reply {1}       so many there are
--       {0}       it was there
--
-- Keeps: says how many there are and not how many more, so a repeated command changes nothing. What is out stays out: with
-- fewer permits than that, the number of those available is negative until some come back.
local key, ids, count = KEYS[1], ids_of(KEYS[1]), tonumber(ARGV[1])
if not string.find(ARGV[1], '^%d+$') or count > 2147483647 then return redis.error_reply('HIRELOCK bad number of permits') end

local is_there = redis.call('EXISTS', key) == 1
local available, expired = reclaim(key, ids, (now_ms()))
if not available then return NO_PERMITS end
if is_there and ARGV[2] == '1' then
  if expired > 0 then tell(ARGV[4], ARGV[3], available) end
  return {0}
end

local wanted = count - redis.call('ZCARD', ids)
if not is_there then
  redis.call('SET', key, text(wanted))
elseif wanted ~= available then
  redis.call('INCRBY', key, text(wanted - available))
end
if not is_there or wanted > available or expired > 0 then tell(ARGV[4], ARGV[3], wanted) end
return {1}
