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
local wrote = fence_write(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if wrote == 1 then return {1} end
return type(wrote) == 'string' and {0, wrote} or wrote
