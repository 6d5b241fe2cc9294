-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Tells waiters how many permits there are. Redisson's read an int: a negative number, or one that
-- does not fit, would be an exception there.
local function tell(channel, publish, permits)
  if permits <= 0 then return end
  redis.pcall(publish, channel, string.format('%.0f', math.min(permits, 2147483647)))
end
