-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Who holds the lock, and for how long?
--
-- KEYS name
-- ARGV [tag]    the key of what the holder may tell of itself; who asks for it wants to know
-- reply {0, -2, '', '0'}                          nobody
--       {1, pttl_ms, holder, count[, tag, s, us]}   this field; and the tag, if there is one, not looked at, with the server's time
local holder = redis.call('HGETALL', KEYS[1])
if not holder[1] then return {0, -2, '', '0'} end
local reply = {1, redis.call('PTTL', KEYS[1]), holder[1], holder[2]}
local tag = ARGV[1] and redis.pcall('GET', ARGV[1])
if type(tag) == 'string' then
  local time = redis.pcall('TIME')
  reply[5], reply[6], reply[7] = tag, time[1] or '0', time[2] or '0'
end
return reply
