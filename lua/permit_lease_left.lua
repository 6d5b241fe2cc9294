-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- How long does a permit last?
--
-- KEYS name
-- ARGV id channel publish
-- reply {1, ms}   so long from now; -1: without end
--       {0}       it is not out
--       {-1}      it had expired
-- include permit
local key, ids, now = KEYS[1], ids_of(KEYS[1]), now_ms()
local id, channel, publish = unpack(ARGV)
if #id ~= 16 then return redis.error_reply('HIRELOCK bad id') end

local score = tonumber(redis.call('ZSCORE', ids, id))
local available, expired = reclaim(key, ids, now)
if not available then return NO_PERMITS end
if expired > 0 then tell(channel, publish, available) end
if not score or score <= now then return {score and -1 or 0} end
return {1, score < NEVER and score - now or -1}
