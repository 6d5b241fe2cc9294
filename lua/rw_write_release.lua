-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Let go of a write lock, or of some of its levels; also what a wait sends that is over, for it may have got it meanwhile, or
-- have asked readers to stay away.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish writer
--      field     with its ':write'
--      want      the hold count that is left, absolute; 0 ends the hold
--      lease_ms  of want > 0: the lease goes on for at least so long
--      rest_ms   of want = 0: 0 deletes the key; else it rests for so long, with count 0 and nobody inside
--      writer    the key by which a waiting writer asks new readers of ours to stay away
-- reply {0}             this field holds nothing
--       {1, '', -1}     done, now or by an earlier copy that left the key resting
--
-- Keeps: works at maxmemory (DEL before HSET, PEXPIRE before HINCRBY). A writer that has taken a read lock as well goes on as a
-- reader: the lock does not rest then, its expiry is that reader's, on which nobody else relies, and other readers hear that
-- they may come in (Redisson's own release tells them nothing here). Two messages: by '1' Redisson wakes those that sleep
-- already, and '0' it remembers for one that is about to. They are last, and their refusal is no failure.
local name, own, want = KEYS[1], ARGV[1], tonumber(ARGV[2])
local call, pcall, levels = redis.call, redis.pcall, 1000
local count = call('HGET', name, own)
if not count then
  if want == 0 and pcall('GET', ARGV[7]) == own then
    pcall('DEL', ARGV[7])
    pcall(ARGV[6], ARGV[5], '0')
  end
  return {0}
end

count = tonumber(count) or 0 -- a stranger may have written anything
if want > 0 then
  call('PEXPIRE', name, math.max(call('PTTL', name), tonumber(ARGV[3])))
  if count > want then call('HINCRBY', name, own, want - count) end
  return {1, '', -1}
end

local left = -2 -- of what else stands here: its own reads, for nobody else is let in
if call('HLEN', name) > 2 then
  local prefix = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
  local fields = call('HGETALL', name)
  for at = 1, #fields, 2 do
    local reads = fields[at] ~= own and tonumber(fields[at + 1]) or 0 -- nothing for 'mode'
    for level = 1, math.min(reads, levels) do
      left = math.max(left, call('PTTL', prefix .. ':' .. fields[at] .. ':rwlock_timeout:' .. level))
    end
  end
end

if left == -2 then
  if tonumber(ARGV[4]) > 0 then
    call('PEXPIRE', name, ARGV[4])
    if count > 0 then call('HINCRBY', name, own, -count) end
    return {1, '', -1}
  end
  call('DEL', name)
else
  call('HDEL', name, own)
  call('HSET', name, 'mode', 'read')
  if left > 0 then call('PEXPIRE', name, left) end
end
if pcall('GET', ARGV[7]) == own then pcall('DEL', ARGV[7]) end -- it waited, and another owner's request got the lock
pcall(ARGV[6], ARGV[5], '1')
pcall(ARGV[6], ARGV[5], '0')
return {1, '', -1}
