-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take a write lock, take it deeper, or make its lease longer.
--
-- KEYS name
-- ARGV field lease_ms want writer prefer_ms [tag]
--      field      with its ':write'
--      want       the hold count wanted, absolute: a repeated command changes nothing
--      writer     the key by which a waiting writer asks new readers of ours to stay away
--      prefer_ms  for how long, unless it asks again; 0: it does not
--      tag        the key of what a writer may tell of itself; who asks for it wants to know
-- reply {1, fresh}                           held by this field, with at least this count and this lease; fresh is 1 when it was free
--       {-1}                                 want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}  held by another; pttl_ms is when it may be free at the latest. s and us: the
--                                              server's time if there is a tag, which is not looked at; else '0'
--
-- Keeps: a key of this lock never lacks an expiry, and no step shortens one. A reader of whose hold keys none is left is over,
-- but its field stays, and while others renew the lock it would keep writers out. So who finds readers looks at eight of them,
-- whichever they are, and takes those out that are over; and goes on while all eight were, so that a crowd that died is soon
-- gone, but not for ever in one command. What may be refused there (by ACL, or by a Redis before 6.2) is no failure: then the
-- lock's own expiry decides.
local name, own = KEYS[1], ARGV[1]
local lease, want = string.find(ARGV[2], '^%d+$') and tonumber(ARGV[2]), tonumber(ARGV[3])
if not lease or lease < 1 or lease > 1e11 or not want or want < 1 then
  return redis.error_reply('HIRELOCK bad lease time or hold count')
end

local call, pcall, handful, rounds, levels = redis.call, redis.pcall, 8, 16, 1000
local held = call('HMGET', name, 'mode', own)
local mode, holder, count, pttl = held[1], '', '0', nil

if mode == 'write' and held[2] then
  if call('PTTL', name) < lease then call('PEXPIRE', name, ARGV[2]) end
  local more = want - (tonumber(held[2]) or 0)
  if more > 0 then call('HINCRBY', name, own, more) end
  return {1, 0}
end
if want > 1 then return {-1} end

local prefix = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
local function lease_of(reader, holds) -- the longest of its keys; -2: over
  local longest = -2
  for level = 1, math.min(tonumber(holds) or 0, levels) do
    longest = math.max(longest, call('PTTL', prefix .. ':' .. reader .. ':rwlock_timeout:' .. level))
  end
  return longest
end

-- Returns how many of a handful live, and how many do not, which are taken out.
local function look_at_some()
  local fields, living, over, longest = pcall('HRANDFIELD', name, handful + 1, 'WITHVALUES'), 0, 0, -2
  if fields.err then return 1, 0 end
  for at = 1, #fields, 2 do
    if fields[at] ~= 'mode' and living + over < handful then
      local left = lease_of(fields[at], fields[at + 1])
      if left ~= -2 then
        living, holder, count, longest = living + 1, fields[at], fields[at + 1], math.max(longest, left)
      elseif pcall('HDEL', name, fields[at]) == 1 then
        over = over + 1
      end
    end
  end
  if living > 0 and longest > 0 and call('HLEN', name) == living + 1 then pttl = longest end
  return living, over
end

if mode == 'read' then
  for _ = 1, rounds do
    local living, over = look_at_some()
    if living > 0 or over == 0 then break end
  end
  if call('HLEN', name) == 1 then
    call('DEL', name)
    mode = false
  end
end

if not mode and call('EXISTS', name) == 0 then
  call('HSET', name, 'mode', 'write', own, ARGV[3])
  local expiry = pcall('PEXPIRE', name, ARGV[2])
  if expiry ~= 1 then
    call('DEL', name)
    return expiry
  end
  if ARGV[5] ~= '0' and pcall('GET', ARGV[4]) == own then pcall('DEL', ARGV[4]) end
  return {1, 1}
end

if mode ~= 'read' then -- without a mode it is a lock of another kind
  local fields = call('HGETALL', name)
  local at = 1
  while at < #fields - 1 and string.sub(fields[at], -6) ~= ':write' do
    at = at + 2
  end
  holder, count = fields[at], fields[at + 1]
end
if ARGV[5] ~= '0' then pcall('SET', ARGV[4], own, 'PX', ARGV[5]) end
local expiry = call('PTTL', name)
if pttl and (expiry < 0 or pttl < expiry) then expiry = pttl end
local tag = ARGV[6] and pcall('GET', ARGV[6])
if type(tag) ~= 'string' then return {0, expiry, '0', '0', holder, count} end
local time = pcall('TIME')
return {0, expiry, time[1] or '0', time[2] or '0', holder, count, tag}
