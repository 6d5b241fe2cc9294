-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Set when a permit ends, sooner or later than it would.
--
-- KEYS name
-- ARGV id lease_ms channel publish
--      lease_ms   counted from now; 0: without end
-- reply {1}       so it ends
--       {0}       it is not out
--       {-1}      it had expired
--
-- Keeps: a permit whose time is over does not come back. Works at maxmemory: ZADD comes behind a
-- write.
-- include permit
local key, ids, now = KEYS[1], ids_of(KEYS[1]), now_ms()
local id, lease_ms, channel, publish = unpack(ARGV)
local expiry = end_of(lease_ms, now)
if #id ~= 16 or not expiry then return redis.error_reply('HIRELOCK bad lease time or id') end

local score = redis.call('ZSCORE', ids, id)
local available, expired = reclaim(key, ids, now)
if not available then return NO_PERMITS end
local lasts = score and tonumber(score) > now
if lasts then
  redis.call('ZREM', ids, '')
  redis.call('ZADD', ids, text(expiry), id)
  outlive(key, ids, now, 0)
end
if expired > 0 then tell(channel, publish, available) end
return {lasts and 1 or score and -1 or 0}
