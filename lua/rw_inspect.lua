-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Who holds the lock, and for how long?
--
-- KEYS name
-- ARGV mode client [tag]
--      mode     'read' or 'write': whose lock is meant; a writer that reads as well holds both
--      client   whose reader is named rather than another's, if it has one
--      tag      the key of what the writer may tell of itself; who asks for it wants to know
-- reply {0, -2, '', '0'}                          nobody holds it so
--       {1, pttl_ms, holder, count[, tag, s, us]}   the writer's field, or that of one of the readers; count is '0' while it rests
--                                                 after its release; the tag, if there is one, not looked at, with the server's time
local name, call = KEYS[1], redis.call
local mode = call('HGET', name, 'mode')
if mode ~= 'read' and mode ~= 'write' then return {0, -2, '', '0'} end

local readers = call('HLEN', name) - (mode == 'write' and 2 or 1)
local is_held = ARGV[1] == mode or (ARGV[1] == 'read' and readers > 0)
if not is_held then return {0, -2, '', '0'} end

local function page(cursor, match)
  local said = redis.pcall('HSCAN', name, cursor, 'MATCH', match, 'COUNT', '1000')
  if said.err then return '0', {} end
  return said[1], said[2]
end

local fields, holder, count, cursor = {}, '', '0', '0'
if mode == 'read' then
  repeat
    cursor, fields = page(cursor, ARGV[2] .. ':*')
  until fields[1] or cursor == '0'
end
if not fields[1] then
  cursor, fields = page('0', '*')
end
for at = 1, #fields, 2 do
  local is_write = string.sub(fields[at], -6) == ':write'
  if fields[at] ~= 'mode' and is_write == (ARGV[1] == 'write') then
    holder, count = fields[at], fields[at + 1]
  end
end
if string.sub(holder, -5) == ':rest' then count = '0' end
local reply = {1, call('PTTL', name), holder, count}
local tag = ARGV[3] and redis.pcall('GET', ARGV[3])
if type(tag) == 'string' then
  local time = redis.pcall('TIME')
  reply[5], reply[6], reply[7] = tag, time[1] or '0', time[2] or '0'
end
return reply
