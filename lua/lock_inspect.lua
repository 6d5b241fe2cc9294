-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Who holds the lock, and for how long?
--
-- KEYS name
-- reply {0, -2, '', '0'}                nobody
--       {1, pttl_ms, holder, count}    this field
local holder = redis.call('HGETALL', KEYS[1])
if not holder[1] then return {0, -2, '', '0'} end
return {1, redis.call('PTTL', KEYS[1]), holder[1], holder[2]}
