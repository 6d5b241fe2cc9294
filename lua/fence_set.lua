-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Write data, unless a larger token has written it.
--
-- KEYS key fence
-- ARGV value token expire_ms remember_ms
-- reply {1}         written
--       {0, last}   a larger token was there before: nothing is written
--
-- Keeps: a repeated command does not get past a larger token.
-- include fence
local key, fence = unpack(KEYS)
local value, token, expire_ms, remember_ms = unpack(ARGV)
local wrote = fence_write(key, fence, value, token, expire_ms, remember_ms)
if wrote == 1 then return {1} end
return type(wrote) == 'string' and {0, wrote} or wrote
