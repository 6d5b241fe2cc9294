-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire a write lock, reenter it, or extend its lease.
--
-- KEYS name
-- ARGV field lease_ms want writer prefer_ms [tag_key [queue sign_ms is_deaf]]
--      field      with its ':write'
--      want       the hold count wanted, absolute: a repeated command changes nothing
--      writer     the key by which a waiting writer asks new readers of ours to stay away
--      prefer_ms  for how long, unless it asks again; 0: it does not
--      tag_key    the key of a writer's tag, for a caller that wants to know it; else ''
--      queue ...  turns.lua
-- reply {1, fresh}   held by this field, with at least this count and this lease; fresh is 1 when
--                    it was free
--       {-1}         want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}
--                    held by another; pttl_ms is when it may be free at the latest. s and us: the
--                    server's time beside a tag, which is not looked at; else '0'
--
-- Keeps: a key of this lock never lacks an expiry, and no step shortens one. A reader without hold
-- keys is over, but its field stays, and while others renew the lock it would keep writers out. So
-- a writer that finds readers looks at any eight of them, and removes those that are over. It goes
-- on while all eight were over, up to a limit, so that a dead crowd is soon gone. A refused command
-- there (by ACL, or by a Redis before 6.2) is no failure: then the lock's own expiry decides.
local field, lease_ms, want, writer, prefer_ms, tag_key, queue, sign_ms, is_deaf = unpack(ARGV)
local call, pcall, HANDFUL, ROUNDS = redis.call, redis.pcall, 8, 16
-- include lease
-- include rw
-- include rw_other
-- include turns

local held = pcall('HMGET', name, 'mode', field)
local mode, left = held[1], call('PTTL', name)
if mode == 'write' and held[2] then
  call('PEXPIRE', name, math.max(left, lease)) -- always, for a WAIT behind it
  local more = wanted - (tonumber(held[2]) or 0)
  if more > 0 then call('HINCRBY', name, field, more) end
  return {1, 0}
end
if wanted > 1 and not held.err then return {-1} end

local function take()
  call('HSET', name, 'mode', 'write', field, want)
  local expiry = pcall('PEXPIRE', name, lease_ms)
  if expiry ~= 1 then
    call('DEL', name)
    return expiry
  end
  if prefer_ms ~= '0' and pcall('GET', writer) == field then pcall('DEL', writer) end
  take_turn(field)
  return {1, 1}
end

local before, before_ms = waiter_before(field)
if left == -2 and not before then return held.err and held or take() end

-- include owner
local time, holder, count, latest -- of a reader that was looked at; latest: when all are over

-- Looks at a few readers. Returns how many live, and how many are over and were removed; or an
-- error when a field is no owner's.
local function look_at_some()
  local fields = pcall('HRANDFIELD', name, HANDFUL + 1, 'WITHVALUES')
  local living, over, longest, are_seen = 0, 0, -2, true
  if fields.err then return 1, 0 end
  for at = 1, #fields, 2 do
    local reader, holds = fields[at], fields[at + 1]
    if reader ~= 'mode' and not is_owner(reader) then
      -- include no_lock
      return no_lock_by(reader)
    elseif reader ~= 'mode' and living + over < HANDFUL then
      local lease_of_it = other_left(reader, holds)
      if lease_of_it ~= -2 then
        living, holder, count = living + 1, reader, holds
        are_seen, longest = are_seen and lease_of_it, math.max(longest, lease_of_it or -2)
      elseif pcall('HDEL', name, reader) == 1 then
        over = over + 1
      end
    end
  end
  if living > 0 and are_seen and longest > 0 and call('HLEN', name) == living + 1 then
    latest = longest
  end
  return living, over
end

if mode == 'read' and not before then
  for _ = 1, ROUNDS do
    local living, over = look_at_some()
    if not over then return living end
    if living > 0 or over == 0 then break end
  end
  if call('HLEN', name) == 1 then
    call('DEL', name)
    return take()
  end
end

if mode ~= 'read' and left ~= -2 then -- without a mode it is a lock of another kind
  local fields
  -- include fields
  -- include holder
end
line_up(field)
if prefer_ms ~= '0' then pcall('SET', writer, field, 'PX', prefer_ms) end
if latest and (left < 0 or latest < left) then left = latest end
if before and not count then left, holder, count = before_ms, before, '0' end
holder, count = holder or '', count and is_count(count) and count or '0'
-- include busy
