-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Let go of the lock, or of some of its levels, and hand it to the first in the queue; also what a wait sends that is over, for it
-- may stand in the queue, or have got the lock meanwhile.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish queue mailbox claim_ms own_channel courtesy numsub [token_key]
--      want         the hold count that is left, absolute; 0 ends the hold
--      lease_ms     of want > 0: the lease goes on for at least so long
--      rest_ms      of want = 0: 0 deletes the key; else it rests for so long, with count 0 and nobody inside
--      channel      Redisson's, which all who wait listen to, or '' to tell nobody; own_channel is listened to by us alone
--      claim_ms     how long the next one has to take up what was written for it
--      courtesy     1: look whether somebody of Redisson's waits; then it is his turn
--      token_key    of a fenced lock: the next one is told his fencing token with the grant
-- reply {0}                    this field holds nothing, and queues no more
--       {1, next, strangers}   done, now or by an earlier copy that left the key resting; next: the field that has it now, or '';
--                              strangers: how many of Redisson's listen; -1 when it was not looked at
--
-- Keeps: works at maxmemory (DEL before HSET, PEXPIRE before HINCRBY: a script that has freed memory, or has written already, may
-- go on writing). A grant is written before it is told, never the other way, and only to a client that listens. One that is
-- refused, or whose expiry is, is taken back: the release goes to nobody then. The message is last and its refusal is no failure:
-- the key is gone, or the next one polls.
local count, want = redis.call('HGET', KEYS[1], ARGV[1]), tonumber(ARGV[2])
if not count then
  if want == 0 then redis.pcall('ZREM', ARGV[7], ARGV[1]) end
  return {0}
end
count = tonumber(count) or 0 -- a stranger may have written anything

if want > 0 then
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])))
  if count > want then redis.call('HINCRBY', KEYS[1], ARGV[1], want - count) end
  return {1, '', -1}
end

if tonumber(ARGV[4]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  if count > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -count) end
  return {1, '', -1}
end

local call, others = redis.pcall, -1

local function look_for_strangers()
  local listeners = call('PUBSUB', ARGV[12], ARGV[5], ARGV[10])
  others = listeners.err and 0 or math.max(0, listeners[2] - listeners[4])
end

-- A client's id is what stands before the last colon of its fields; ours and Redisson's have 36 bytes.
local function client_of(field)
  if string.byte(field, 37) == 58 then return string.sub(field, 1, 36) end
  return string.match(field, '^(.*):[^:]*$')
end

local waiting = call('ZCARD', ARGV[7])
local has_queue = type(waiting) == 'number' and waiting > 0
local time = has_queue and call('TIME')
if has_queue and ARGV[11] == '1' then look_for_strangers() end
if others > 0 then
  call(ARGV[6], ARGV[10], 'y')
elseif has_queue and not time.err then
  local own = client_of(ARGV[1])
  for _ = 1, 16 do
    local popped = call('ZPOPMIN', ARGV[7])
    local field = not popped.err and popped[1]
    if not field then break end
    local client = client_of(field)
    waiting = waiting - 1
    local listeners = client and client ~= own and call('PUBSUB', ARGV[12], ARGV[8] .. client)
    if listeners and not listeners.err and listeners[2] > 0 then
      redis.call('DEL', KEYS[1])
      call('HSET', KEYS[1], field, '1')
      if call('PEXPIRE', KEYS[1], ARGV[9]) ~= 1 then break end
      local words = {'g', field, time[1], time[2], ARGV[9], waiting, KEYS[1]}
      local token = ARGV[13] and type(call('INCR', ARGV[13])) == 'number' and call('GET', ARGV[13])
      if type(token) == 'string' then
        words[1] = 'f'
        table.insert(words, 7, token)
      end
      call(ARGV[6], ARGV[8] .. client, table.concat(words, ' '))
      return {1, field, others}
    end
  end
end

redis.call('DEL', KEYS[1])
local heard = ARGV[5] == '' and 0 or call(ARGV[6], ARGV[5], '0')
if heard == 0 then others = 0 end
if others < 0 and ARGV[11] == '1' then look_for_strangers() end
return {1, '', others}
