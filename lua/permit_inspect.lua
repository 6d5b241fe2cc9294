-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- How many permits are available, and how many are out?
--
-- KEYS name
-- ARGV channel publish
-- reply {1, available, acquired}   available may be negative; 0, 0 for a semaphore that is not
--                                  there
-- include permit
local key, ids = KEYS[1], ids_of(KEYS[1])
local channel, publish = unpack(ARGV)
local available, expired = reclaim(key, ids, (now_ms()))
if not available then return NO_PERMITS end
if expired > 0 then tell(channel, publish, available) end
return {1, available, redis.call('ZCARD', ids)}
