-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take several locks at once; or, for a caller that waits, what stands before the first busy one, and a place in the queue for that.
--
-- KEYS name...                    in the order in which they are taken, which is the same for all clients
-- ARGV lease_ms waits queue_ms mailbox, and for each name: field queue tag
--      waits     0: all or nothing; 1: the caller will wait for the first busy one, holding what precedes it
--      queue_ms  how long a queue stands without being asked for
--      mailbox   what a client's id follows in the name of its own channel
--      tag       the key of what a holder may tell of itself, when the caller wants to know; else ''
-- reply {item...}, for the names up to the first busy one, each what lock_acquire would say:
--       {1, fresh}                           held by this field, with at least this lease; fresh is 1 when it was free
--       {2}                                  it is free, or this field's, and was left as it is, for a later one is busy
--       {0, pttl_ms, s, us, holder, count[, tag]}   held by another field, at this time of the server; tag: not looked at
--
-- Keeps: what lock_acquire keeps. All names are looked at before anything is written, so a key that is no lock stops everything;
-- an expiry that is refused (by ACL) takes all keys of this call back.
local call, pcall, argv = redis.call, redis.pcall, ARGV
local lease, waits = string.find(argv[1], '^%d+$') and tonumber(argv[1]), argv[2] == '1'
if not lease or lease < 1 or lease > 1e11 then return redis.error_reply('HIRELOCK bad lease time') end

local free, items, busy, busy_holder = {}, {}, nil, nil
for i, name in ipairs(KEYS) do
  local holder, field = call('HGETALL', name), argv[2 + 3 * i]
  free[i] = holder[1] == nil
  local mine = false
  for j = 1, #holder, 2 do mine = mine or holder[j] == field end
  if not free[i] and not mine and not busy then busy, busy_holder = i, holder end
end

local count = busy and busy - 1 or #KEYS
if busy and not waits then
  for i = 1, count do items[i] = {2} end
  count = 0
end

for i = 1, count do
  local name, field = KEYS[i], argv[2 + 3 * i]
  if free[i] then
    call('HSET', name, field, '1')
    local expiry = pcall('PEXPIRE', name, argv[1])
    if expiry ~= 1 then
      for j = 1, i do
        if free[j] then call('DEL', KEYS[j]) end
      end
      return expiry
    end
  elseif call('PTTL', name) < lease then
    call('PEXPIRE', name, argv[1])
  end
  items[i] = {1, free[i] and 1 or 0}
end
for i = 1, count do
  if free[i] then pcall('DEL', argv[3 + 3 * i]) end
end
if not busy then return items end

local name, field, queue = KEYS[busy], argv[2 + 3 * busy], argv[3 + 3 * busy]
local time, added = pcall('TIME'), 0
if time.err then
  time = {'0', '0'} -- without a clock nobody can tell an old grant from a new one: no queue
elseif waits then
  added = pcall('ZADD', queue, 'NX', time[1] .. string.sub('00000' .. time[2], -6), field)
  pcall('PEXPIRE', queue, argv[3])
end
if added ~= 1 or pcall('ZCARD', queue) == 1 then
  local client = string.match(busy_holder[1], '^(.*):[^:]*$')
  if client then pcall('PUBLISH', argv[4] .. client, 'w ' .. name) end
end
local tag = argv[4 + 3 * busy] ~= '' and pcall('GET', argv[4 + 3 * busy])
items[busy] = {0, call('PTTL', name), time[1], time[2], busy_holder[1], busy_holder[2], type(tag) == 'string' and tag or nil}
return items
