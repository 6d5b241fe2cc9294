-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Close the latch, with so many to count down, if it is open.
--
-- KEYS name
-- ARGV notes id note_ms channel publish count settled...
-- reply {1}     closed, now or by an earlier copy
--       {0}     it was closed before
--
-- Keeps: refused at maxmemory, as any new key is, so the note comes first. The message (Redisson's `1`: closed) is last and
-- its refusal is no failure.
if not string.find(ARGV[6], '^%d+$') or tonumber(ARGV[6]) < 1 then
  return redis.error_reply('HIRELOCK bad count')
end
if redis.call('EXISTS', KEYS[1]) == 1 then return {redis.call('EXISTS', NOTE)} end
if not note(1) then return {1} end

forget(7)
local _, refusal = deed('SET', KEYS[1], ARGV[6])
if refusal then return refusal end
redis.pcall(ARGV[5], ARGV[4], '1')
return {1}
