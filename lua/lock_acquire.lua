-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take the lock, take it deeper, or make its lease longer; or stand in the queue for it.
--
-- KEYS name
-- ARGV field lease_ms want queue queue_ms mailbox [token_key tokens [tag]]
--      want      the hold count wanted, absolute: a repeated command changes nothing
--      queue_ms  how long the queue stands without being asked for; 0: do not queue
--      mailbox   what a client's id follows in the name of its own channel
--      tokens    how many fencing tokens are wanted: one for each hold that may follow without a request; none with token_key ''
--      tag       the key of what the holder may tell of itself; who asks for it wants to know
-- reply {1, fresh[, token]}                  held by this field, with at least this count and this lease; fresh is 1 when it was free;
--                                            token: the last one of those wanted, as text, for a number loses digits above 2^53
--       {-1}                                 want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}   held by another field, at this time of the server; tag: not looked at
--
-- Keeps: a key of this lock never lacks an expiry, and no step shortens one. The lease is judged before anything is written,
-- for an error raised after a write leaves the write behind: digits only, since PEXPIRE refuses the 1e3 that Lua reads. An
-- expiry that is refused all the same (by ACL) takes the key back. Who finds no key forgets the queue: its living members ask
-- again, its dead ones would cost a claim each. The queue is no KEY, and what is done to it may be refused: then there is none.
-- The holder is told that it is wanted ("w name") by the first in the queue, and again by whoever asks again, for a message may
-- be lost; who comes behind others need not: the holder knows, or was told with its grant.
local lease, want = string.find(ARGV[2], '^%d+$') and tonumber(ARGV[2]), tonumber(ARGV[3])
if not lease or lease < 1 or lease > 1e11 or not want or want < 1 then
  return redis.error_reply('HIRELOCK bad lease time or hold count')
end

local function token()
  if (ARGV[7] or '') == '' then return nil end
  redis.call('INCRBY', ARGV[7], ARGV[8])
  return redis.call('GET', ARGV[7])
end

local holder = redis.call('HGETALL', KEYS[1])
for i = 1, #holder, 2 do
  if holder[i] == ARGV[1] then
    if redis.call('PTTL', KEYS[1]) < lease then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
    local more = want - (tonumber(holder[i + 1]) or 0)
    if more > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], more) end
    return {1, 0, token()}
  end
end

if want > 1 then return {-1} end
if not holder[1] then
  local mine = token()
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if expiry ~= 1 then
    redis.call('DEL', KEYS[1])
    return expiry
  end
  redis.pcall('DEL', ARGV[4])
  return {1, 1, mine}
end

local call = redis.pcall
local time, added = call('TIME'), 0
if time.err then
  time = {'0', '0'} -- without a clock nobody can tell an old grant from a new one: no queue
elseif ARGV[5] ~= '0' then
  added = call('ZADD', ARGV[4], 'NX', time[1] .. string.sub('00000' .. time[2], -6), ARGV[1])
  call('PEXPIRE', ARGV[4], ARGV[5])
end
if added ~= 1 or call('ZCARD', ARGV[4]) == 1 then
  local client = string.match(holder[1], '^(.*):[^:]*$')
  if client then call('PUBLISH', ARGV[6] .. client, 'w ' .. KEYS[1]) end
end
local tag = ARGV[9] and call('GET', ARGV[9])
return {0, redis.call('PTTL', KEYS[1]), time[1], time[2], holder[1], holder[2], type(tag) == 'string' and tag or nil}
