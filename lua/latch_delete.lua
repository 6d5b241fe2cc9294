-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Open the latch, whatever its count is.
--
-- KEYS name
-- ARGV notes id note_ms channel publish settled...
-- reply {1}     opened, now or by an earlier copy
--       {0}     it was open
--
-- Keeps: works at maxmemory. A lock that goes by the same name is no latch, and stays. The
-- message is last and its refusal is no failure; it is `0`, as of a last count, since Redisson's
-- own `1` for this wakes no waiter.
-- include latch
local channel, publish = unpack(ARGV, 4, 5)
if not redis.call('GET', name) then return {redis.call('EXISTS', NOTE)} end

forget(6)
if not note(1) then return {1} end
local _, refusal = once('DEL', name)
if refusal then return refusal end
redis.pcall(publish, channel, '0')
return {1}
