-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the semaphore_ scripts have in common; it stands before each of them.
--
-- A semaphore is Redisson's: an integer, how many permits are available. Who has taken them is written nowhere, so a command
-- that comes again could not be told from a new one. So each command notes what it did, in a key of its own beside the
-- semaphore:
--
-- KEYS name
-- ARGV notes id note_ms ... settled...
--      notes     what the names of this client's notes begin with
--      id        of the command, a number; the same when it is sent again
--      note_ms   how long a note stands: longer than a command can be on its way
--      settled   ids whose answers have arrived, so that nobody sends them again; at least one, 0 stands for none
--
-- Keeps: what was done is not done again, and is answered alike. A note is written before the deed, and taken back when the
-- deed is refused. No expiry of the semaphore is changed.
local NOTE = (ARGV[1] or '') .. (ARGV[2] or '')

-- In digits, for a double does not hold all of them; nil when a stranger wrote something else.
local function available()
  local text = redis.call('GET', KEYS[1]) or '0'
  return string.find(text, '^-?%d+$') and text
end

local function no_number()
  return redis.error_reply('WRONGTYPE the semaphore is not a number')
end

-- Redis lets a script that has written go on writing at maxmemory; and removing is allowed there, of nothing too.
local function forget(settled)
  for i = settled, #ARGV do redis.call('DEL', ARGV[1] .. ARGV[i]) end
end

-- False when an earlier copy has noted something.
local function note(what)
  return redis.call('SET', NOTE, what, 'NX', 'PX', ARGV[3])
end

-- The new number; or nil and an error, and it is not noted any more.
local function change(verb, permits)
  local value = redis.pcall(verb, KEYS[1], permits)
  if type(value) ~= 'table' then return value end
  redis.call('DEL', NOTE)
  return nil, value
end

-- Redisson's waiters read how many there are, as an int: a negative one, or one that does not fit, would be an exception there.
local function tell(channel, publish, value)
  if value > 0 then redis.pcall(publish, channel, string.format('%.0f', math.min(value, 2147483647))) end
end
