-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Give back permits that an acquire took, or may have taken: for a wait that is over, or for some
-- of the waiters that it served.
--
-- KEYS name
-- ARGV notes id note_ms channel publish field queue keep settled...
--      id      of the acquire
--      queue   of a wait that is over: where its field may have lined up (turns.lua); else ''
--      keep    how many of its permits are kept, absolute: a repeated command changes nothing
-- reply {0}             it took nothing, and will take nothing if it comes late
--       {1, '', -1}     no more than `keep` is taken now, by this or an earlier copy
--
-- Keeps: works at maxmemory. A semaphore that expired or was deleted gets nothing back: with
-- these permits alone it would be another one. The message is last and its refusal is no failure.
-- include semaphore
local channel, publish, field, queue, keep = unpack(ARGV, 4, 8)
local kept = tonumber(keep)
if not kept or kept < 0 then return redis.error_reply('HIRELOCK bad number of permits') end

forget(9)
if queue ~= '' then redis.pcall('ZREM', queue, field, '@' .. field) end
if note(0) then return {0} end
local noted = redis.call('GET', NOTE)
if (tonumber(noted) or 0) <= kept then return {1, '', -1} end
redis.call('SET', NOTE, keep, 'PX', note_ms)
if redis.call('EXISTS', name) == 0 then return {1, '', -1} end

local value = redis.pcall('INCRBY', name, noted - kept)
if type(value) == 'table' then
  redis.call('SET', NOTE, noted, 'PX', note_ms)
  return value
end
tell(channel, publish, value)
return {1, '', -1}
