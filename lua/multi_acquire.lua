-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire several locks at once; or, for a caller that waits, those before the first busy one, and
-- a place in the queue for that one.
--
-- KEYS name...        in the order in which they are taken, which is the same for all clients
-- ARGV lease_ms waits queue_ms mailbox, for each name: field queue tag_key;
--      [publish [sign_ms]]
--      waits          0: all or nothing; 1: the caller will wait for the first busy one, holding
--                     those before it
--      queue_ms       how long a queue stands without being asked for
--      mailbox        the name of a client's own channel is this and the client's id; '': in a
--                     cluster it has one for each name, "hirelock:{name}:" and the id
--      tag_key        the key of the holder's tag, for a caller that wants to know it; else ''
--      publish        the command to publish with, in a cluster
--      sign_ms        of a caller that no message reaches, as in lock_acquire
-- reply {item...}, for the names up to the first busy one, each what lock_acquire would say:
--       {1, fresh}    held by this field, with at least this lease; fresh is 1 when it was free
--       {2}           it is free, or this field's, and was left as it is, for a later one is busy
--       {0, pttl_ms, s, us, holder, count[, tag]}
--                     held by another field, at this time of the server; the tag is not looked at
--
-- Keeps: what lock_acquire keeps. All names are looked at before anything is written, so a key that
-- is no lock stops everything; an expiry that is refused (by ACL) takes all keys of this call back.
local call, pcall, argv = redis.call, redis.pcall, ARGV
local lease_ms, waits, queue_ms, mailbox = argv[1], argv[2] == '1', argv[3], argv[4]
local names = {unpack(KEYS, 1, math.floor((#argv - 4) / 3))} -- the other keys are only declared
local publish, sign_ms = unpack(argv, 5 + 3 * #names)
local want = '1' -- of each
-- include lease
local function words_of(i) return argv[2 + 3 * i], argv[3 + 3 * i], argv[4 + 3 * i] end

-- For each name its PTTL; and the names that are neither free nor this caller's.
local left, others = {}, {}
for i, name in ipairs(names) do
  left[i] = call('PTTL', name)
  if left[i] ~= -2 and type(pcall('HGET', name, (words_of(i)))) ~= 'string' then
    others[#others + 1] = i
  end
end

-- Takes the names before `stop`. Returns their items, or the refusal of an expiry.
local function take(stop)
  local items = {}
  for i = 1, stop - 1 do
    local name, is_free, field = names[i], left[i] == -2, words_of(i)
    if is_free then
      call('HSET', name, field, '1')
      local expiry = pcall('PEXPIRE', name, lease_ms)
      if expiry ~= 1 then
        for j = 1, i do
          if left[j] == -2 then call('DEL', names[j]) end
        end
        return expiry
      end
    else
      call('PEXPIRE', name, math.max(left[i], lease)) -- always, for a WAIT behind it
    end
    items[i] = {1, is_free and 1 or 0}
  end
  for i = 1, stop - 1 do
    local _, queue = words_of(i)
    if left[i] == -2 then pcall('DEL', queue) end
  end
  return items
end

if not others[1] then return take(#names + 1) end

local name, fields, holder, count
for i = #others, 1, -1 do
  name = names[others[i]]
  -- include fields
  -- include holder
end

local at, items = others[1], {} -- the first busy one, which is `name`
local field, queue, tag_key = words_of(at)
if waits then
  items = take(at)
  if items.err then return items end
else
  queue_ms = '0'
  for i = 1, at - 1 do items[i] = {2} end
end
if mailbox == '' then
  -- include braces
  mailbox = 'hirelock:' .. braced(name) .. ':'
end
-- include queue
-- include tag
items[at] = {0, left[at], time[1], time[2], holder, count, tag}
return items
