-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Write the holder's tag.
--
-- KEYS name tag_key
-- ARGV field owner held_ms words stands_ms
--      owner      the number of the owner in its process, which is in a waiter's tag, too
--      held_ms    for how long it has been held; the reader is told since when, by the server's
--                 clock
--      words      of the holder: "pid host thread"
--      stands_ms  how long the tag stands if it is not written again
-- reply {1}      done: the tag is "field owner since_ms words"
--       {0}      this field holds nothing
--
-- Keeps: the field is in the tag, so that none counts for any other holder, however late it is
-- written and however long it stands; and a tag always has an expiry.
local name, tag_key = KEYS[1], KEYS[2]
local field, owner, held_ms, words, stands_ms = unpack(ARGV)
-- include clock
local count = redis.call('HGET', name, field)
if (tonumber(count or '') or 0) < 1 then return {0} end
local since = text(now_ms() - tonumber(held_ms))
redis.call('SET', tag_key, table.concat({field, owner, since, words}, ' '), 'PX', stands_ms)
return {1}
