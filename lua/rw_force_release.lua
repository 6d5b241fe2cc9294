-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take the lock from all its readers, or from its writer, and wake the waiters.
--
-- KEYS name
-- ARGV mode channel publish
--      mode     'read' or 'write': whose lock is meant
-- reply {1}     there was one
--       {0}     there was none
--
-- Keeps: the hold keys go with the readers. From a writer that reads as well, the read lock alone is taken by 'read', and both
-- by 'write', as a plain release by somebody else would leave a reader that does not know. The messages are those of
-- rw_write_release and rw_read_release, are last, and their refusal is no failure: the key is gone, and waiters poll.
local name, call, levels = KEYS[1], redis.call, 1000
local mode = call('HGET', name, 'mode')
if mode ~= 'write' and (mode ~= 'read' or ARGV[1] == 'write') then return {0} end

local prefix = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
local fields, found = call('HGETALL', name), mode == ARGV[1]
for at = 1, #fields, 2 do
  local reader = fields[at]
  if reader ~= 'mode' and string.sub(reader, -6) ~= ':write' then
    found = true
    for level = 1, math.min(tonumber(fields[at + 1]) or 0, levels) do
      call('DEL', prefix .. ':' .. reader .. ':rwlock_timeout:' .. level)
    end
    if mode ~= ARGV[1] then call('HDEL', name, reader) end
  end
end
if not found then return {0} end
if mode == ARGV[1] then
  call('DEL', name)
  if mode == 'write' then redis.pcall(ARGV[3], ARGV[2], '1') end
  redis.pcall(ARGV[3], ARGV[2], '0')
end
return {1}
