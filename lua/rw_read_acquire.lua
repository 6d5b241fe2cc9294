-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire a read lock, reenter it, or extend its lease.
--
-- KEYS name
-- ARGV field lease_ms want writer under [tag_key [queue sign_ms is_deaf]]
--      want      the hold count wanted, absolute: a repeated command changes nothing
--      writer    the key by which a waiting writer asks new readers to stay away
--      under     the field by which this reader holds the lock for writing, or ''
--      tag_key   the key of a writer's tag, for a caller that wants to know it; else ''
--      queue ... turns.lua; only writers before this one bar its way
-- reply {1, fresh}   held by this field, with at least this count and this lease; fresh is 1 when
--                    it was free
--       {-1}         want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}
--                    held for writing by another; or that writer's turn, whose count is '0'. s
--                    and us: the server's time beside a tag, which is not looked at; else '0'
--
-- Keeps: a field without a hold key is taken for absent. The hold keys come first: if Redis refuses
-- a later command, hold keys without a field are left, which have no effect and expire. No step
-- shortens an expiry.
local field, lease_ms, want, writer, under, tag_key, queue, sign_ms, is_deaf = unpack(ARGV)
local call = redis.call
-- include lease
-- include rw
-- include turns

local function is_writer(waiter)
  return string.sub(waiter, -6) == ':write'
end

local held = redis.pcall('HMGET', name, 'mode', field, under)
local mode, count, writes = held[1], tonumber(held[2] or '') or 0, tonumber(held[3] or '') or 0
if count > 0 and lease_left(field, count) == -2 then count = 0 end
if count == 0 and wanted > 1 and not held.err then return {-1} end

if count == 0 and writes < 1 then
  local left, holder, count, time = call('PTTL', name) -- the others are of another hold
  if held.err and left == -2 then return held end
  local before, before_ms = waiter_before(field, is_writer)
  if mode ~= 'read' and left ~= -2 then -- without a mode it is a lock of another kind
    local fields
    -- include fields
    -- include holder
    line_up(field)
    -- include busy
  end
  holder, count = before, '0'
  if before then
    left = before_ms
    line_up(field)
    -- include busy
  end
  holder = redis.pcall('GET', writer)
  if type(holder) == 'string' and #holder <= 255 then
    local expiry = call('PTTL', writer)
    if left < 0 or expiry < left then left = expiry end
    line_up(field)
    -- include busy
  end
end

local hold = hold_of(field)
for i = math.min(count + 1, wanted, LEVELS), math.min(wanted, LEVELS) do
  if i > count or call('PTTL', hold .. i) < lease then
    call('SET', hold .. i, '1', 'PX', lease_ms)
  end
end
take_turn(field)
if not mode then
  call('HSET', name, 'mode', 'read', field, want)
  local expiry = redis.pcall('PEXPIRE', name, lease_ms)
  if expiry ~= 1 then
    call('DEL', name, hold .. 1)
    return expiry
  end
  return {1, 1}
end
call('PEXPIRE', name, math.max(call('PTTL', name), lease)) -- always, for a WAIT behind it
if count == 0 then
  call('HSET', name, field, want)
elseif count < wanted then
  call('HINCRBY', name, field, wanted - count)
end
return {1, 0}
