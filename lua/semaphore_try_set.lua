-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Make the semaphore, with so many permits, if there is none.
--
-- KEYS name
-- ARGV notes id note_ms channel publish permits ttl_ms settled...
--      ttl_ms   how long it stands; 0: for ever
-- reply {1}     made, now or by an earlier copy
--       {0}     there is one
--
-- Keeps: refused at maxmemory, as any new key is, so the note comes first. The message is last
-- and its refusal is no failure.
-- include semaphore
local channel, publish, permits, ttl_ms = unpack(ARGV, 4, 7)
if not string.find(permits, '^%d+$') or not string.find(ttl_ms, '^%d+$') then
  return redis.error_reply('HIRELOCK bad number of permits or time')
end
if redis.call('EXISTS', name) == 1 then return {redis.call('EXISTS', NOTE)} end
if not note(1) then return {1} end

forget(8)
local _, refusal = once('SET', name, permits, unpack(ttl_ms ~= '0' and {'PX', ttl_ms} or {}))
if refusal then return refusal end
tell(channel, publish, tonumber(permits))
return {1}
