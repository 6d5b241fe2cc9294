-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Close the latch with this count, if it is open.
--
-- KEYS name
-- ARGV notes id note_ms channel publish count settled...
-- reply {1}     closed, now or by an earlier copy
--       {0}     it was closed before
--
-- Keeps: refused at maxmemory, as any new key is, so the note comes first. The message
-- (Redisson's `1`: closed) is last and its refusal is no failure.
-- include latch
local channel, publish, count = unpack(ARGV, 4, 6)
if not string.find(count, '^%d+$') or tonumber(count) < 1 then
  return redis.error_reply('HIRELOCK bad count')
end
if redis.call('EXISTS', name) == 1 then return {redis.call('EXISTS', NOTE)} end
if not note(1) then return {1} end

forget(7)
local _, refusal = once('SET', name, count)
if refusal then return refusal end
redis.pcall(publish, channel, '1')
return {1}
