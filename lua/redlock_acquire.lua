-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire the lock of redis.io's page "Distributed Locks with Redis" at one server, or extend its
-- lease.
--
-- KEYS name [marker]
-- ARGV value lease_ms [young_ms]
--      value      of this hold alone: redsync, redis-py and others compare the whole of it
--      marker     hirelock_data: since when this server has its data, by its clock in milliseconds
--      young_ms   data that have not been there for so long give no lock
-- reply {1, fresh}    held by this value, with at least this lease; fresh is 1 when it was free
--       {0, pttl_ms, s, us, holder, 1}
--                     held by another value, of which these are the first bytes, at this time of
--                     the server
--       {-1, age_ms}  free, but the data are so young, and a holder may have gone with those before
--
-- The marker is data like all others: where it is missing the server is new, or its data were lost,
-- by an empty disk, FLUSHALL, or an empty replica in its place. It is set then. So is one that is
-- not of the past: the clock was stepped back.
--
-- Keeps: the key never lacks an expiry, and no step shortens one; what gives the lock also writes.
local name, marker = KEYS[1], KEYS[2]
local value, lease_ms, young_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- include clock
local age_ms, holder = young_ms, redis.call('GET', name)
if marker then
  local now, since = now_ms(), tonumber(redis.call('GET', marker) or nil)
  if not since or since > now then
    since = now
    redis.call('SET', marker, text(now))
  end
  age_ms = now - since
end
if not holder then
  if marker and age_ms < young_ms then return {-1, age_ms} end
  redis.call('SET', name, value, 'PX', lease_ms)
  return {1, 1}
end

local left = redis.call('PTTL', name)
if holder == value then
  redis.call('PEXPIRE', name, math.max(left, tonumber(lease_ms)))
  return {1, 0}
end
local time = redis.pcall('TIME')
if time.err then time = {'0', '0'} end
return {0, left, time[1], time[2], string.sub(holder, 1, 63), '1'}
