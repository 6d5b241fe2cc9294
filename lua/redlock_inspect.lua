-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Reads the holder of redlock_acquire at one server, and its lease.
--
-- KEYS name
-- reply {0, -2, '', '0'}             free
--       {1, pttl_ms, holder, '1'}    the first bytes of the key's value
local holder = redis.call('GET', KEYS[1])
if not holder then return {0, -2, '', '0'} end
return {1, redis.call('PTTL', KEYS[1]), string.sub(holder, 1, 63), '1'}
