-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release the lock, or some of its levels, and grant it to the first waiter in the queue. A wait
-- that is over sends this too: it may be in the queue, or may have got the lock meanwhile.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish queue mailbox claim_ms own_channel yields
--      numsub [token_key [by_clock]]
--      want         the hold count that is left, absolute; 0 ends the hold
--      lease_ms     of want > 0: the lease goes on for at least so long
--      rest_ms      of want = 0: 0 deletes the key; else the key stays for so long, with count 0
--                   and no holder
--      channel      Redisson's, to which all waiters subscribe, or '' for no message; only our
--                   waiters subscribe to own_channel
--      queue        '' in a grace (term.lua): nobody is granted the lock
--      claim_ms     how long the next holder has to take up what was written for it
--      yields       1: if a waiter of Redisson's is there, it gets its turn
--      token_key    of a fenced lock: the grant tells the next holder its fencing token
--      by_clock     1: it is no lower than the server's clock
-- reply {0}                    this field holds nothing, and queues no more
--       {1, next, foreign}     done, now or by an earlier copy that left the key for its minimum
--                              time; next: the field that has it now, or ''; foreign: the number of
--                              foreign waiters (Redisson's), -1 when they were not counted
--
-- Keeps: works at maxmemory (DEL before HSET: a script that has freed memory may go on writing). A
-- grant is written before it is told, never the other way, and only to a client that listens, or
-- that no message reaches and that has asked a moment ago (sign.lua): it finds the grant by its
-- next request. A grant that is refused, or whose expiry is, is taken back: then the lock is free.
-- The message is last and its refusal is no failure: the key is gone, or the next holder polls.
local name = KEYS[1]
local field, want, lease_ms, rest_ms, channel, publish, queue, mailbox, claim_ms, own_channel,
  yields, numsub, token_key, by_clock = unpack(ARGV)
local count = redis.call('HGET', name, field)
if not count then
  if want == '0' and queue ~= '' then redis.pcall('ZREM', queue, field, '@' .. field) end
  return {0}
end

if want ~= '0' or rest_ms ~= '0' then
  -- include levels
  -- Another program may have written any count.
  return leave_levels(name, field, tonumber(count) or 0, tonumber(want), lease_ms, rest_ms)
end

local call, delete, others = redis.pcall, redis.call, -1

local function count_foreign_waiters()
  local listeners = call('PUBSUB', numsub, channel, own_channel)
  others = listeners.err and 0 or math.max(0, listeners[2] - listeners[4])
end

-- The id of an owner's client, which stands before the last colon of its field.
local function client_of(field)
  return string.match(field, '^(.*):[^:]*$')
end

local waiting = queue ~= '' and call('ZCARD', queue)
-- include sign
-- Has this waiter given a sign of life that still stands? The sign is taken away. (ZADD tells it,
-- which a client may that queues.)
local function has_asked(next, time)
  local ends = tonumber(call('ZADD', queue, 'XX', 'INCR', '0', '@' .. next))
  if not ends or call('ZREM', queue, '@' .. next) ~= 1 then return false end
  waiting = waiting - 1
  return ends > tonumber(sign_until(time, 0))
end

local has_queue = type(waiting) == 'number' and waiting > 0
local time = has_queue and call('TIME')
if has_queue and yields == '1' then count_foreign_waiters() end
if others > 0 then
  call(publish, own_channel, 'y')
elseif has_queue and not time.err then
  local own = client_of(field)
  for _ = 1, 16 do
    local popped = call('ZPOPMIN', queue)
    local next = not popped.err and popped[1]
    if not next then break end
    local client = client_of(next)
    waiting = waiting - 1
    local listeners = client and client ~= own and call('PUBSUB', numsub, mailbox .. client)
    local hears = listeners and not listeners.err and listeners[2] > 0
    if hears or listeners and has_asked(next, time) then
      delete('DEL', name)
      delete = call -- while a slot moves away, no command may look for a key that is gone
      call('HSET', name, next, '1')
      if call('PEXPIRE', name, claim_ms) ~= 1 then break end
      local words = {'g', next, time[1], time[2], claim_ms, waiting, name}
      local token
      if token_key then
        -- include token
        token = draw(call, token_key, 1, by_clock)
      end
      if type(token) == 'string' then
        words[1] = 'f'
        table.insert(words, 7, token)
      end
      call(publish, mailbox .. client, table.concat(words, ' '))
      return {1, next, others}
    end
  end
end

delete('DEL', name)
local heard = channel == '' and 0 or call(publish, channel, '0')
if heard == 0 then others = 0 end
if others < 0 and yields == '1' then count_foreign_waiters() end
return {1, '', others}
