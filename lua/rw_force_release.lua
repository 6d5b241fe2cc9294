-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Force-release the lock of all its readers, or of its writer, wake the waiters, and tell the
-- holders' clients.
--
-- KEYS name
-- ARGV mode channel publish mailbox
--      mode     'read' or 'write': the half to release
-- reply {1}     there was one
--       {0}     there was none
--
-- Keeps: a key that is no lock stays. From a writer that reads as well, 'read' takes the read
-- lock alone, and 'write' both: else a reader would be left that does not know of it. The script
-- deletes the hold keys of one page of readers. Those of a bigger crowd expire, as do those that
-- are at another node while their slot moves; without a field they have no effect. The messages are
-- those of rw_write_release and rw_read_release, are last, and their refusal is no failure: the key
-- is gone, and waiters poll.
local wanted, channel, publish, mailbox = unpack(ARGV)
local call = redis.call
-- include rw
-- include force
-- include rw_page

local mode = redis.pcall('HGET', name, 'mode')
if mode ~= 'read' and mode ~= 'write' then
  local fields
  -- include fields
  return no_force(fields) or {0}
end
if mode == 'read' and wanted == 'write' then return {0} end

local _, fields, refusal = page_of('0', '*')
refusal = refusal or no_force(fields)
if refusal then return refusal end
local found = mode == wanted
for at = 1, #fields, 2 do
  local reader = fields[at]
  if reader ~= 'mode' and string.sub(reader, -6) ~= ':write' then
    found = true
    for level = 1, math.min(tonumber(fields[at + 1]) or 0, LEVELS) do
      redis.pcall('DEL', hold_of(reader) .. level)
    end
    if mode ~= wanted then call('HDEL', name, reader) end
  end
end
if not found then return {0} end
if mode == wanted then
  call('DEL', name)
  if mode == 'write' then redis.pcall(publish, channel, '1') end
  redis.pcall(publish, channel, '0')
end
tell_holders(fields, mailbox, publish)
return {1}
