-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the scripts of the semaphore and the latch have in common: both are an integer of Redisson's.
--
-- Who has changed it is written nowhere, so a command that comes again could not be told from a new one. So each command notes
-- what it did, in a key of its own beside the integer:
--
-- KEYS name
-- ARGV notes id note_ms ... settled...
--      notes     what the names of this client's notes begin with
--      id        of the command, a number; the same when it is sent again
--      note_ms   how long a note stands: longer than a command can be on its way
--      settled   ids of which no copy is on its way any more, for they were answered; at least one, 0 stands for none
--
-- Keeps: what was done is not done again, and is answered alike. A note is written before the deed, and taken back when the
-- deed is refused.
local NOTE = (ARGV[1] or '') .. (ARGV[2] or '')

-- In digits, for a double does not hold all of them; '0' where there is none; nil when a stranger wrote something else.
local function number()
  local text = redis.call('GET', KEYS[1]) or '0'
  return string.find(text, '^-?%d+$') and text
end

local function no_number()
  return redis.error_reply('WRONGTYPE the key holds no number')
end

-- Redis lets a script that has written go on writing at maxmemory; and removing is allowed there, of nothing too.
local function forget(settled)
  for i = settled, #ARGV do redis.call('DEL', ARGV[1] .. ARGV[i]) end
end

-- False when an earlier copy has noted something.
local function note(what)
  return redis.call('SET', NOTE, what, 'NX', 'PX', ARGV[3])
end

-- Does what was noted: its reply; or nil and an error, and it is not noted any more.
local function deed(...)
  local done = redis.pcall(...)
  if type(done) ~= 'table' or not done.err then return done end
  redis.call('DEL', NOTE)
  return nil, done
end
