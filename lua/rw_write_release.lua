-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release a write lock, or some of its levels. A wait that is over sends this too: it may have got
-- the lock meanwhile, or have asked readers to stay away.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish writer [queue]
--      field     with its ':write'
--      want      the hold count that is left, absolute; 0 ends the hold
--      lease_ms  of want > 0: the lease goes on for at least so long
--      rest_ms   of want = 0: 0 deletes the key; else the key stays for so long, with count 0 and
--                no holder
--      writer    the key by which a waiting writer asks new readers of ours to stay away
--      queue     of a wait that is over: where it may have lined up (turns.lua)
-- reply {0}             this field holds nothing
--       {1, '', -1}     done, now or by an earlier copy that left the key for its minimum time
--
-- Keeps: works at maxmemory (DEL before HSET). A writer that has taken a read lock as well goes
-- on as a reader: the lock does not rest then, its expiry is that reader's, on which no other owner
-- relies, and a message tells other readers that they may enter (Redisson's own release sends none
-- here). Two messages: at '1' Redisson wakes waiters that sleep already; '0' it remembers for a
-- waiter that is about to sleep. They are last, and their refusal is no failure.
local field, want, lease_ms, rest_ms, channel, publish, writer, queue = unpack(ARGV)
local call, pcall = redis.call, redis.pcall
-- include rw
-- include levels
want = tonumber(want)
local count = call('HGET', name, field)
if not count then
  if queue then pcall('ZREM', queue, field, '@' .. field) end
  if want == 0 and pcall('GET', writer) == field then
    pcall('DEL', writer)
    pcall(publish, channel, '0')
  end
  return {0}
end
count = tonumber(count) or 0 -- another program may have written any value
if want > 0 then return leave_levels(name, field, count, want, lease_ms, rest_ms) end

local left = -2 -- the lease of its own reads; no other owner can read now
if call('HLEN', name) > 2 then
  local fields = call('HGETALL', name)
  for at = 1, #fields, 2 do
    if fields[at] ~= field then left = math.max(left, lease_left(fields[at], fields[at + 1])) end
  end
end

if left == -2 then
  if rest_ms ~= '0' then return leave_levels(name, field, count, 0, lease_ms, rest_ms) end
  call('DEL', name)
else
  call('HDEL', name, field)
  call('HSET', name, 'mode', 'read')
  if left > 0 then call('PEXPIRE', name, left) end
end
-- It waited, and another owner's request got the lock.
if pcall('GET', writer) == field then pcall('DEL', writer) end
pcall(publish, channel, '1')
pcall(publish, channel, '0')
return {1, '', -1}
