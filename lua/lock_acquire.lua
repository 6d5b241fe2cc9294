-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take the lock, take it deeper, or make its lease longer.
--
-- KEYS name
-- ARGV field lease_ms want            the hold count wanted, absolute: a repeated command changes nothing
-- reply {1}                           held by this field, with at least this count and this lease
--       {-1}                          want > 1, but the outer hold is gone
--       {0, pttl_ms, holder, count}   held by another field
--
-- Keeps: a key of this lock never lacks an expiry, and no step shortens one. The lease is judged before anything is written,
-- for an error raised after a write leaves the write behind: digits only, since PEXPIRE refuses the 1e3 that Lua reads. An
-- expiry that is refused all the same (by ACL) takes the key back.
local lease, want = string.find(ARGV[2], '^%d+$') and tonumber(ARGV[2]), tonumber(ARGV[3])
if not lease or lease < 1 or lease > 1e11 or not want or want < 1 then
  return redis.error_reply('HIRELOCK bad lease time or hold count')
end

local count = redis.call('HGET', KEYS[1], ARGV[1])
if count then
  if redis.call('PTTL', KEYS[1]) < lease then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  if tonumber(count) < want then redis.call('HINCRBY', KEYS[1], ARGV[1], want - count) end
  return {1}
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  if want > 1 then return {-1} end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if expiry ~= 1 then
    redis.call('DEL', KEYS[1])
    return expiry
  end
  return {1}
end

if want > 1 then return {-1} end
local holder = redis.call('HGETALL', KEYS[1])
return {0, redis.call('PTTL', KEYS[1]), holder[1], holder[2]}
