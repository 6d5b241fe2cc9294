-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Reads the lock's holder and its lease.
--
-- KEYS name
-- ARGV mode client [tag_key]
--      mode      'read' or 'write': the half in question; a writer that reads as well holds both
--      client    if this client has a reader, the reply names it rather than another
--      tag_key   the key of the writer's tag, for a caller that wants to know it
-- reply {0, -2, '', '0'}       not held in this mode
--       {1, pttl_ms, holder, count[, tag, s, us]}
--                  the writer's field, or that of one of the readers; count is '0' in the minimum
--                  time after a release; the tag, if there is one, not looked at, with the
--                  server's time
--
-- Keeps: of a crowd only four pages are looked at for a reader of the client.
local wanted, client, tag_key = unpack(ARGV)
local name, call, NOBODY = KEYS[1], redis.call, {0, -2, '', '0'}
-- include rw_page
-- include owner

local mode = redis.pcall('HGET', name, 'mode')
if mode ~= 'read' and mode ~= 'write' then
  local fields, holder, count
  -- include fields
  if not fields[1] then return NOBODY end
  -- include holder
  return NOBODY
end

local readers = call('HLEN', name) - (mode == 'write' and 2 or 1)
local is_held = wanted == mode or (wanted == 'read' and readers > 0)
if not is_held then return NOBODY end

local fields, holder, count, cursor, pages = {}, '', '0', '0', 0
if mode == 'read' then
  repeat
    cursor, fields = page_of(cursor, client .. ':*')
    pages = pages + 1
  until fields[1] or cursor == '0' or pages == 4
end
if not fields[1] then
  cursor, fields = page_of('0', '*')
end
for at = 1, #fields, 2 do
  local field = fields[at]
  if field ~= 'mode' and not is_owner(field) then
    -- include no_lock
    return no_lock_by(field)
  end
  if field ~= 'mode' and (string.sub(field, -6) == ':write') == (wanted == 'write') then
    holder, count = field, fields[at + 1]
  end
end
if string.sub(holder, -5) == ':rest' or not is_count(count) then count = '0' end
-- include held
