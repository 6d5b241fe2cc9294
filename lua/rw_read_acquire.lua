-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take a read lock, take it deeper, or make its lease longer.
--
-- KEYS name
-- ARGV field lease_ms want writer under [tag]
--      want      the hold count wanted, absolute: a repeated command changes nothing
--      writer    the key by which a waiting writer asks new readers to stay away
--      under     the field by which this reader holds the lock for writing, or ''
--      tag       the key of what a writer may tell of itself; who asks for it wants to know
-- reply {1, fresh}                           held by this field, with at least this count and this lease; fresh is 1 when it was free
--       {-1}                                 want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}  held for writing by another; or wanted by that writer, whose count is '0'. s and
--                                              us: the server's time if there is a tag, which is not looked at; else '0'
--
-- Keeps: each level has a hold key of its own, which expires with its lease: Redisson's readers set the lock's expiry from
-- those of all readers when they leave, and a reader of whose hold keys none is left is over. A field without any is taken for
-- absent. The hold keys come first: what is refused after them leaves keys that nobody looks at without a field, and that
-- expire. No step shortens an expiry. Levels above the 1,000th have no key, so that nobody has to look at more.
local name, field = KEYS[1], ARGV[1]
local lease, want = string.find(ARGV[2], '^%d+$') and tonumber(ARGV[2]), tonumber(ARGV[3])
if not lease or lease < 1 or lease > 1e11 or not want or want < 1 then
  return redis.error_reply('HIRELOCK bad lease time or hold count')
end

local call, levels = redis.call, 1000
local held = call('HMGET', name, 'mode', field, ARGV[5])
local mode, count, writes = held[1], tonumber(held[2] or '') or 0, tonumber(held[3] or '') or 0
local prefix = string.find(name, '{', 1, true) and name or '{' .. name .. '}'
local hold = prefix .. ':' .. field .. ':rwlock_timeout:'

local left = -2
for i = 1, math.min(count, levels) do
  left = math.max(left, call('PTTL', hold .. i))
end
if left == -2 then count = 0 end
if count == 0 and want > 1 then return {-1} end

local function busy(holder, holds, expiry)
  local pttl = call('PTTL', name)
  if expiry and (pttl < 0 or expiry < pttl) then pttl = expiry end
  local tag = ARGV[6] and redis.pcall('GET', ARGV[6])
  if type(tag) ~= 'string' then return {0, pttl, '0', '0', holder, holds} end
  local time = redis.pcall('TIME')
  return {0, pttl, time[1] or '0', time[2] or '0', holder, holds, tag}
end

if count == 0 and writes < 1 then
  if mode ~= 'read' and (mode or call('EXISTS', name) == 1) then -- without a mode it is a lock of another kind
    local fields = call('HGETALL', name)
    local at = 1
    while at < #fields - 1 and string.sub(fields[at], -6) ~= ':write' do
      at = at + 2
    end
    return busy(fields[at], fields[at + 1])
  end
  local wanted = redis.pcall('GET', ARGV[4])
  if type(wanted) == 'string' then return busy(wanted, '0', call('PTTL', ARGV[4])) end
end

for i = math.min(count + 1, want, levels), math.min(want, levels) do
  if i > count or call('PTTL', hold .. i) < lease then call('SET', hold .. i, '1', 'PX', ARGV[2]) end
end
if not mode then
  call('HSET', name, 'mode', 'read', field, ARGV[3])
  local expiry = redis.pcall('PEXPIRE', name, ARGV[2])
  if expiry ~= 1 then
    call('DEL', name, hold .. 1)
    return expiry
  end
  return {1, 1}
end
if call('PTTL', name) < lease then call('PEXPIRE', name, ARGV[2]) end
if count == 0 then
  call('HSET', name, field, ARGV[3])
elseif count < want then
  call('HINCRBY', name, field, want - count)
end
return {1, 0}
