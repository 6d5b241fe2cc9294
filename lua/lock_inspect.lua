-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Reads the lock's holder and its lease.
--
-- KEYS name
-- ARGV [tag_key]   the key of the holder's tag, for a caller that wants to know it
-- reply {0, -2, '', '0'}                free
--       {1, pttl_ms, holder, count[, tag, s, us]}
--                  this field; and the tag, if there is one, not looked at, with the server's time
local name, tag_key = KEYS[1], ARGV[1]
local fields, holder, count
-- include fields
if not fields[1] then return {0, -2, '', '0'} end
-- include holder
-- include held
