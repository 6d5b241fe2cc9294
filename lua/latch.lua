-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the latch_ scripts have in common; it stands before each of them.
--
-- A latch is Redisson's: an integer, how many have to count down yet; an open one has no key. Each client notes beside it what its
-- commands did, as with a semaphore, and by the same arguments: notes id notes_ms ... settled... (semaphore.lua).
local notes, id = ARGV[1], ARGV[2]

-- In digits, '0' for an open one; nil when a stranger wrote something else.
local function count_left()
  local text = redis.call('GET', KEYS[1]) or '0'
  return string.find(text, '^-?%d+$') and text
end

local function no_number()
  return redis.error_reply('WRONGTYPE the latch is not a number')
end

-- Notes it, and does it; an error, and it is not noted any more.
local function refusal_of(what, ...)
  redis.call('HSET', notes, id, what)
  redis.call('PEXPIRE', notes, ARGV[3])
  local done = redis.pcall(...)
  if type(done) ~= 'table' or not done.err then return nil end
  redis.call('HDEL', notes, id)
  return done
end
