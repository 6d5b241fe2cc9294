-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The common part of the scripts of the semaphore and the latch: both are an integer of Redisson's,
-- at `name`.
--
-- The integer does not record which client changed it, so a script could not tell a repeated
-- command from a new one. So each command notes what it did, in a key beside the integer:
--
-- KEYS name
-- ARGV notes id note_ms ... settled...
--      notes     what the names of this client's notes begin with
--      id        of the command, a number; the same when it is sent again
--      note_ms   how long a note stands: longer than a command can be on its way
--      settled   ids of which no copy is on its way any more, for they were answered; at least one,
--                0 stands for none
--
-- Keeps: a repeated command changes nothing, and gets the same answer. The note is written before
-- the change, and removed when the change is refused.
local name, notes, id, note_ms = KEYS[1], unpack(ARGV, 1, 3)
local NOTE = (notes or '') .. (id or '')

-- As text, since a double does not hold all digits; '0' if there is no key; nil when another
-- program wrote something else.
local function number()
  local text = redis.call('GET', name) or '0'
  return string.find(text, '^-?%d+$') and text
end

local function no_number()
  return redis.error_reply('WRONGTYPE the key holds no number')
end

-- Redis lets a script that has written go on writing at maxmemory; and removing is allowed there,
-- of nothing too.
local function forget(settled)
  for i = settled, #ARGV do redis.call('DEL', notes .. ARGV[i]) end
end

-- False when an earlier copy of this command has noted something.
local function note(what)
  return redis.call('SET', NOTE, what, 'NX', 'PX', note_ms)
end

-- Runs the noted command. Returns its reply; or nil and an error, and removes the note.
local function once(...)
  local done = redis.pcall(...)
  if type(done) ~= 'table' or not done.err then return done end
  redis.call('DEL', NOTE)
  return nil, done
end
