-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Open the latch whoever has to count down yet.
--
-- KEYS name
-- ARGV notes id notes_ms channel publish settled...
-- reply {1}     opened, now or by an earlier copy
--       {0}     it was open
--
-- Keeps: works at maxmemory. A lock that goes by the same name is no latch, and stays. The message is last and its refusal is
-- no failure; it is `0`, as of a last count, since Redisson's own `1` for this wakes nobody.
if redis.call('HEXISTS', notes, id) == 1 then return {1} end
if not redis.call('GET', KEYS[1]) then return {0} end

redis.call('HDEL', notes, unpack(ARGV, 6))
local refusal = refusal_of(1, 'DEL', KEYS[1])
if refusal then return refusal end
redis.pcall(ARGV[5], ARGV[4], '0')
return {1}
