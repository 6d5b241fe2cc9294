-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Count the latch down by one; the last one opens it.
--
-- KEYS name
-- ARGV notes id note_ms channel publish settled...
-- reply {1}     open: by this one, by an earlier copy of it, or before
--       {0}     closed: more count-downs are to come, or were when an earlier copy ran
--
-- Keeps: works at maxmemory, as a script that has written already may go on writing. The message
-- (Redisson's `0`: open) is last and its refusal is no failure.
-- include latch
local channel, publish = unpack(ARGV, 4, 5)
local text = number()
if not text then return no_number() end
local left = tonumber(text) - 1

forget(6)
if left < 0 then
  redis.call('DEL', name) -- a count of 0, which Redisson can set
  return {1}
end
if not note(left == 0 and 1 or 0) then return {tonumber(redis.call('GET', NOTE))} end
local _, refusal = once(left == 0 and 'DEL' or 'DECR', name)
if refusal then return refusal end
if left > 0 then return {0} end
redis.pcall(publish, channel, '0')
return {1}
