-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the latch_ scripts have in common; it stands before each of them.
--
-- A latch is Redisson's: an integer, how many have to count down yet; an open one has no key. A command notes what it did, so
-- that it is not done again, as with a semaphore, and by the same arguments: notes id note_ms ... settled... (semaphore.lua).
local NOTE = (ARGV[1] or '') .. (ARGV[2] or '')

-- In digits, '0' for an open one; nil when a stranger wrote something else.
local function count_left()
  local text = redis.call('GET', KEYS[1]) or '0'
  return string.find(text, '^-?%d+$') and text
end

local function no_number()
  return redis.error_reply('WRONGTYPE the latch is not a number')
end

local function forget(settled)
  for i = settled, #ARGV do redis.call('DEL', ARGV[1] .. ARGV[i]) end
end

-- False when an earlier copy has noted something.
local function note(what)
  return redis.call('SET', NOTE, what, 'NX', 'PX', ARGV[3])
end

-- Does what was noted. Nil; or an error, and it is not noted any more.
local function refusal_of(...)
  local done = redis.pcall(...)
  if type(done) ~= 'table' or not done.err then return nil end
  redis.call('DEL', NOTE)
  return done
end
