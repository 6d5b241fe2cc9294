-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Put permits into the semaphore, or take some out of it whoever needs them: a release, and a change of its size.
--
-- KEYS name
-- ARGV notes id note_ms channel publish permits must_exist settled...
--      permits      what is added; may be negative, and make less than none
--      must_exist   1: only if there is a semaphore
-- reply {1}     done, now or by an earlier copy
--       {0}     there is no semaphore
--
-- Keeps: works at maxmemory. The message is last and its refusal is no failure.
if not string.find(ARGV[6], '^-?%d+$') then return redis.error_reply('HIRELOCK bad number of permits') end
if ARGV[7] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then return {redis.call('EXISTS', NOTE)} end

forget(8)
if not note(1) then return {1} end
local value, refusal = deed('INCRBY', KEYS[1], ARGV[6])
if refusal then return refusal end
tell(ARGV[4], ARGV[5], value)
return {1}
