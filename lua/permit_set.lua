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
-- Keeps: the count is absolute, so a repeated command changes nothing. Permits that are out stay
-- out: if the new total is smaller, the number available is negative until some come back.
-- include permit
local key, ids = KEYS[1], ids_of(KEYS[1])
local digits, if_new, channel, publish = unpack(ARGV)
local count = tonumber(digits)
if not string.find(digits, '^%d+$') or count > 2147483647 then
  return redis.error_reply('HIRELOCK bad number of permits')
end

local is_there = redis.call('EXISTS', key) == 1
local available, expired = reclaim(key, ids, (now_ms()))
if not available then return NO_PERMITS end
if is_there and if_new == '1' then
  if expired > 0 then tell(channel, publish, available) end
  return {0}
end

local wanted = count - redis.call('ZCARD', ids)
if not is_there then
  redis.call('SET', key, text(wanted))
elseif wanted ~= available then
  redis.call('INCRBY', key, text(wanted - available))
end
if not is_there or wanted > available or expired > 0 then tell(channel, publish, wanted) end
return {1}
