-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Is the latch open? A wait sends this as its acquire, which acquires nothing.
--
-- KEYS name
-- reply {1, 0}                          open
--       {0, -1, '0', '0', '', count}    so many count-downs are still to come
-- include latch
local left = number()
if not left then return no_number() end
if tonumber(left) <= 0 then return {1, 0} end
return {0, -1, '0', '0', '', left}
