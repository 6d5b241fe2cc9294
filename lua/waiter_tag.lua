-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Write a waiter's tag.
--
-- KEYS tag_key
-- ARGV waited_ms words stands_ms
--      waited_ms  for how long it has waited; the reader is told since when, by the server's clock
--      words      of the waiter: "pid host thread"
--      stands_ms  how long the tag stands if it is not written again
-- reply {1}       done: the tag is "since_ms words"
--
-- Keeps: a tag always has an expiry, so that those of a process that has died end by themselves.
local tag_key = KEYS[1]
local waited_ms, words, stands_ms = unpack(ARGV)
-- include clock
redis.call('SET', tag_key, text(now_ms() - tonumber(waited_ms)) .. ' ' .. words, 'PX', stands_ms)
return {1}
