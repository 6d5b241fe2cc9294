-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Add permits to the semaphore, or remove some without waiting: a release, or a change of its size.
--
-- KEYS name
-- ARGV notes id note_ms channel publish permits must_exist settled...
--      permits      to be added; may be negative, and so may the sum
--      must_exist   1: only if there is a semaphore
-- reply {1}     done, now or by an earlier copy
--       {0}     there is no semaphore
--
-- Keeps: works at maxmemory. The message is last and its refusal is no failure.
-- include semaphore
local channel, publish, permits, must_exist = unpack(ARGV, 4, 7)
if not string.find(permits, '^-?%d+$') then
  return redis.error_reply('HIRELOCK bad number of permits')
end
if must_exist == '1' and redis.call('EXISTS', name) == 0 then
  return {redis.call('EXISTS', NOTE)}
end

forget(8)
if not note(1) then return {1} end
local value, refusal = once('INCRBY', name, permits)
if refusal then return refusal end
tell(channel, publish, value)
return {1}
