-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The reply of an inspect that found a holder, from `holder`, `count` and `tag_key`; the server's
-- time stands beside a tag.
-- include tag
local left, time = redis.call('PTTL', name), tag and redis.pcall('TIME')
if not tag then return {1, left, holder, count} end
return {1, left, holder, count, tag, time[1] or '0', time[2] or '0'}
