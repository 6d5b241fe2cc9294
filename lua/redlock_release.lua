-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release the lock of redlock_acquire at one server: delete the key if it has this value.
--
-- KEYS name
-- ARGV value rest_ms channel publish
--      rest_ms      0 deletes the key; else it stays for so long
--      channel      the waiters' channel, or '' for no message
-- reply {0}      the key has another value, or there is none
--       {1}      done
--
-- Keeps: works at maxmemory; no step shortens an expiry but the release itself. The message is last
-- and its refusal is no failure: the key is gone, and waiters poll.
local name = KEYS[1]
local value, rest_ms, channel, publish = unpack(ARGV)
local held = redis.pcall('GET', name)
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then return held end
if held ~= value then return {0} end
if rest_ms ~= '0' then
  redis.call('PEXPIRE', name, rest_ms)
else
  redis.call('DEL', name)
  if channel ~= '' then redis.pcall(publish, channel, '0') end
end
return {1}
