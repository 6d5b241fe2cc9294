-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the semaphore_ scripts have in common; it stands before each of them.
--
-- A semaphore is Redisson's: an integer, how many permits are available. What has taken them is not written anywhere, so a command
-- that comes again could not be told from a new one. So each client notes beside it what its commands did:
--
-- KEYS name
-- ARGV notes id notes_ms ... settled...
--      notes     the hash of this client's notes
--      id        of the command, a number; the same when it is sent again
--      notes_ms  how long the notes stand without being written to
--      settled   ids whose answers have arrived, so that nobody sends them again; at least one, 0 stands for none
--
-- Keeps: what was done is not done again, and is answered alike. A note is written before the deed, and taken back when the
-- deed is refused. No expiry of the semaphore is changed.
local notes, id = ARGV[1], ARGV[2]

-- In digits, for a double does not hold all of them; nil when a stranger wrote something else.
local function available()
  local text = redis.call('GET', KEYS[1]) or '0'
  return string.find(text, '^-?%d+$') and text
end

local function no_number()
  return redis.error_reply('WRONGTYPE the semaphore is not a number')
end

-- Redis lets a script that has written go on writing at maxmemory, and removing is allowed there.
local function forget(settled)
  redis.call('HDEL', notes, unpack(ARGV, settled))
end

local function note(what)
  redis.call('HSET', notes, id, what)
  redis.call('PEXPIRE', notes, ARGV[3])
end

-- The new number; or an error, and the note is what it was.
local function change(verb, permits, noted_before)
  local value = redis.pcall(verb, KEYS[1], permits)
  if type(value) ~= 'table' then return value end
  if noted_before then
    redis.call('HSET', notes, id, noted_before)
  else
    redis.call('HDEL', notes, id)
  end
  return nil, value
end

-- Redisson's waiters read how many there are, as an int: a negative one, or one that does not fit, would be an exception there.
local function tell(channel, publish, value)
  if value > 0 then redis.pcall(publish, channel, string.format('%.0f', math.min(value, 2147483647))) end
end
