-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire the lock of redis.io's page "Distributed Locks with Redis" at one server, or extend its
-- lease.
--
-- KEYS name
-- ARGV value lease_ms
--      value      of this hold alone: redsync, redis-py and others compare the whole of it
-- reply {1, fresh}    held by this value, with at least this lease; fresh is 1 when it was free
--       {0, pttl_ms, s, us, holder, 1}
--                     held by another value, of which these are the first bytes, at this time of
--                     the server
--
-- Keeps: the key never lacks an expiry, and no step shortens one; what gives the lock also writes.
local name, value, lease_ms = KEYS[1], ARGV[1], ARGV[2]
if redis.call('SET', name, value, 'NX', 'PX', lease_ms) then return {1, 1} end

local holder, left = redis.call('GET', name), redis.call('PTTL', name)
if holder == value then
  redis.call('PEXPIRE', name, math.max(left, tonumber(lease_ms)))
  return {1, 0}
end
local time = redis.pcall('TIME')
if time.err then time = {'0', '0'} end
return {0, left, time[1], time[2], string.sub(holder, 1, 63), '1'}
