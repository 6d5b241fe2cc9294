-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Who holds the lock, and for how long?
--
-- KEYS name
-- ARGV mode field
--      mode     'read' or 'write': whose lock is meant; a writer that reads as well holds both
--      field    the reader that is named, rather than any, if it is there; or ''
-- reply {held, pttl_ms, holder, count, mode, readers}
--      held     1 or 0; when it is 0, pttl_ms, holder and count are -2, '' and '0'
--      holder   the writer's field, or that of one of the readers; count is '0' while it rests after its release
--      mode     how it is held: 'read', 'write', or '' when it is free
--      readers  how many fields read; some of them may be over, which the next writer finds out
local name, call = KEYS[1], redis.call
local mode = call('HGET', name, 'mode')
if mode ~= 'read' and mode ~= 'write' then return {0, -2, '', '0', '', 0} end

local readers = call('HLEN', name) - (mode == 'write' and 2 or 1)
local is_held = ARGV[1] == mode or (ARGV[1] == 'read' and readers > 0)
if not is_held then return {0, -2, '', '0', mode, readers} end

local fields, holder, count = {ARGV[2], call('HGET', name, ARGV[2])}, '', '0'
if not fields[2] then -- any two are enough, where one may be 'mode'; a writer has three at most
  fields = mode == 'read' and redis.pcall('HRANDFIELD', name, 2, 'WITHVALUES') or call('HGETALL', name)
end
for at = 1, #fields, 2 do
  local is_write = string.sub(fields[at], -6) == ':write'
  if fields[at] ~= 'mode' and is_write == (ARGV[1] == 'write') then
    holder, count = fields[at], fields[at + 1]
  end
end
if string.sub(holder, -5) == ':rest' then count = '0' end
return {1, call('PTTL', name), holder, count, mode, readers}
