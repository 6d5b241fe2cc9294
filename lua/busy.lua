-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The reply of an acquire that was refused, from `left`, `holder`, `count` and `tag_key`; and
-- `time`, the answer of TIME: with nil, TIME is asked if there is a tag beside the lock.
-- include tag
if tag and not time then time = redis.pcall('TIME') end
if not time or time.err then time = {'0', '0'} end
return {0, left, time[1], time[2], holder, count, tag}
