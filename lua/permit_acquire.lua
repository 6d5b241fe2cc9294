-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire permits, all or none; or extend the leases of those that an earlier copy acquired.
--
-- KEYS name
-- ARGV ids lease_ms channel publish [field queue sign_ms is_deaf]
--      ids        16 bytes for each permit, one after the other
--      lease_ms   how long they last, counted from now; 0: without end
--      field      of the waiter; the words behind it: turns.lua
-- reply {1, fresh}       they stand, for this time at least; fresh is 1 when one was taken now
--       {0, pttl_ms, s, us, '', available}
--                        not enough are available (0 is told for fewer, and in another's turn),
--                        at this time of the server; pttl_ms: until so many have expired that they
--                        are, -1 when that is not to be foreseen
--
-- Keeps: a repeated command takes nothing twice, and no step shortens a permit. A semaphore with a
-- time to live stands for longer than its permits; one that is refused prolongs it, too, since
-- Redisson's permits do not. An id is written
-- before it is counted; if the count is refused (by ACL), the ids are taken back. At maxmemory
-- nothing is taken, unless that which expired made room.
-- include permit
local key, ids, now, time = KEYS[1], ids_of(KEYS[1]), now_ms()
local packed = split(ARGV[1])
local lease_ms, channel, publish, field, queue, sign_ms, is_deaf = unpack(ARGV, 2)
-- include turns
local expiry = end_of(lease_ms, now)
if not packed or not expiry then return redis.error_reply('HIRELOCK bad lease time or ids') end

local available, expired = reclaim(key, ids, now)
if not available then return NO_PERMITS end

local entries, lacking = {}, #packed
for _, id in ipairs(packed) do
  local score = redis.call('ZSCORE', ids, id)
  if score then lacking = lacking - 1 end
  entries[#entries + 1] = text(math.max(expiry, tonumber(score or 0)))
  entries[#entries + 1] = id
end

-- In how many ms so many permits will have expired that there are enough.
local function ends_in()
  local nth = lacking - available - 1
  local next_end = tonumber(redis.call('ZRANGE', ids, nth, nth, 'WITHSCORES')[2] or NEVER)
  return next_end < NEVER and next_end - now or -1
end

local before, wait_ms
if lacking > 0 then before, wait_ms = waiter_before(field) end
if before or lacking > 0 and lacking > available then
  if expired > 0 then tell(channel, publish, available) end
  outlive(key, ids, now, 0)
  line_up(field)
  if lacking > available then wait_ms = ends_in() end
  return {0, wait_ms, time[1], time[2], '', before and '0' or text(math.max(available, 0))}
end

local added = 0
for at = 1, #entries, 1000 do
  added = added + redis.call('ZADD', ids, unpack(entries, at, math.min(at + 999, #entries)))
end
if added > 0 then
  local left = redis.pcall('DECRBY', key, added)
  if type(left) ~= 'number' then
    for _, id in ipairs(packed) do redis.call('ZREM', ids, id) end
    return left
  end
end
outlive(key, ids, now, 0)
take_turn(field)
if expired > 0 then tell(channel, publish, available - added) end
return {1, added > 0 and 1 or 0}
