-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Make permits more, or fewer.
--
-- KEYS name
-- ARGV more channel publish
--      more       digits, with a minus for fewer; 0 makes no semaphore
-- reply {1}       done
--
-- Keeps: permits that are out stay out: if the new total is smaller, the number available is
-- negative until some come back. A repeated command would add twice.
-- include permit
local key, ids = KEYS[1], ids_of(KEYS[1])
local digits, channel, publish = unpack(ARGV)
local more = tonumber(digits)
if not string.find(digits, '^-?%d+$') or math.abs(more) > 2147483647 then
  return redis.error_reply('HIRELOCK bad number of permits')
end

local available, expired = reclaim(key, ids, (now_ms()))
if not available then return NO_PERMITS end
local fits = available + more <= 2147483647
if fits and more ~= 0 then
  redis.call('INCRBY', key, digits)
  available = available + more
end
if expired > 0 or (fits and more > 0) then tell(channel, publish, available) end
if not fits then return redis.error_reply('HIRELOCK more permits than Redisson can count') end
return {1}
