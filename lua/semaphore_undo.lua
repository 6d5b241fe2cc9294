-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Give back what an acquire took, or may have taken: for a wait that is over, or for some of those whom it served.
--
-- KEYS name
-- ARGV notes id notes_ms channel publish keep settled...
--      id      of the acquire
--      keep    how many of its permits are kept, absolute: a repeated command changes nothing
-- reply {0}             it took nothing, and will take nothing if it comes late
--       {1, '', -1}     no more than that is taken, now or by an earlier copy
--
-- Keeps: works at maxmemory. A semaphore that expired or was deleted gets nothing back: with these permits alone it would be
-- another one. The message is last and its refusal is no failure.
local keep = tonumber(ARGV[6])
if not keep or keep < 0 then return redis.error_reply('HIRELOCK bad number of permits') end

local noted = tonumber(redis.call('HGET', notes, id) or '')
forget(7)
if noted and noted <= keep then return {1, '', -1} end
note(noted and keep or 0)
if not noted then return {0} end

if redis.call('EXISTS', KEYS[1]) == 1 then
  local value, refusal = change('INCRBY', noted - keep, noted)
  if refusal then return refusal end
  tell(ARGV[4], ARGV[5], value)
end
return {1, '', -1}
