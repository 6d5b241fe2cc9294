-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Set how many permits there are, those that are out included.
--
-- KEYS name
-- ARGV count if_new ttl_ms channel publish
--      if_new     1: only if the semaphore is not there yet
--      ttl_ms     its time to live; 0: for ever, or what it has
-- reply {1}       so many there are
--       {0}       it was there
--
-- Keeps: the count is absolute, so a repeated command changes nothing. No permit outlives the
-- semaphore, and the time to live of one that was there with if_new only grows. Permits that are
-- out stay out: if the new total is smaller, the number available is negative until some come back.
-- include permit
local key, ids = KEYS[1], ids_of(KEYS[1])
local digits, if_new, ttl_ms, channel, publish = unpack(ARGV)
local count, now, ttl = tonumber(digits), now_ms(), tonumber(ttl_ms)
if not string.find(digits, '^%d+$') or count > 2147483647 then
  return redis.error_reply('HIRELOCK bad number of permits')
end
if not string.find(ttl_ms, '^%d+$') or ttl > 1e11 then
  return redis.error_reply('HIRELOCK bad time to live')
end

local is_there = redis.call('EXISTS', key) == 1
local available, expired = reclaim(key, ids, now)
if not available then return NO_PERMITS end
if is_there and if_new == '1' then
  outlive(key, ids, now, ttl)
  if expired > 0 then tell(channel, publish, available) end
  return {0}
end

local wanted = count - redis.call('ZCARD', ids)
if not is_there then
  redis.call('SET', key, text(wanted))
elseif wanted ~= available then
  redis.call('INCRBY', key, text(wanted - available))
end
if ttl > 0 then
  expire(key, ids, ttl)
  outlive(key, ids, now, ttl)
end
if not is_there or wanted > available or expired > 0 then tell(channel, publish, wanted) end
return {1}
