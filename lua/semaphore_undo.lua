-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Give back what an acquire took, or may have taken: for a wait that is over, or for some of those whom it served.
--
-- KEYS name
-- ARGV notes id note_ms channel publish keep settled...
--      id      of the acquire
--      keep    how many of its permits are kept, absolute: a repeated command changes nothing
-- reply {0}             it took nothing, and will take nothing if it comes late
--       {1, '', -1}     no more than that is taken, now or by an earlier copy
--
-- Keeps: works at maxmemory. A semaphore that expired or was deleted gets nothing back: with these permits alone it would be
-- another one. The message is last and its refusal is no failure.
local keep = tonumber(ARGV[6])
if not keep or keep < 0 then return redis.error_reply('HIRELOCK bad number of permits') end

forget(7)
if note(0) then return {0} end
local noted = redis.call('GET', NOTE)
if (tonumber(noted) or 0) <= keep then return {1, '', -1} end
redis.call('SET', NOTE, ARGV[6], 'PX', ARGV[3])
if redis.call('EXISTS', KEYS[1]) == 0 then return {1, '', -1} end

local value = redis.pcall('INCRBY', KEYS[1], noted - keep)
if type(value) == 'table' then
  redis.call('SET', NOTE, noted, 'PX', ARGV[3])
  return value
end
tell(ARGV[4], ARGV[5], value)
return {1, '', -1}
