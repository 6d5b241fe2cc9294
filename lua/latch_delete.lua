-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Open the latch whoever has to count down yet.
--
-- KEYS name
-- ARGV notes id note_ms channel publish settled...
-- reply {1}     opened, now or by an earlier copy
--       {0}     it was open
--
-- Keeps: works at maxmemory. A lock that goes by the same name is no latch, and stays. The message is last and its refusal is
-- no failure; it is `0`, as of a last count, since Redisson's own `1` for this wakes nobody.
if not redis.call('GET', KEYS[1]) then return {redis.call('EXISTS', NOTE)} end

forget(6)
if not note(1) then return {1} end
local _, refusal = deed('DEL', KEYS[1])
if refusal then return refusal end
redis.pcall(ARGV[5], ARGV[4], '0')
return {1}
