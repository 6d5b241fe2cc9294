-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Tell who holds the lock.
--
-- KEYS name tag
-- ARGV field held_ms words stands_ms
--      held_ms    for how long it has been held; the reader is told since when, by the server's clock
--      words      of the holder: "pid host thread"
--      stands_ms  how long the tag stands if it is not written again
-- reply {1}      told: "field since_ms words"
--       {0}      this field holds nothing
--
-- Keeps: the field is in the tag, so that none counts for any other holder, however late it is written and however long it
-- stands; and a tag always has an expiry.
local count = redis.call('HGET', KEYS[1], ARGV[1])
if (tonumber(count or '') or 0) < 1 then return {0} end
local time = redis.call('TIME')
local since = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[2]))
redis.call('SET', KEYS[2], table.concat({ARGV[1], since, ARGV[3]}, ' '), 'PX', ARGV[4])
return {1}
