-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- What the semaphore_ scripts have in common; it stands before each of them. A semaphore is an integer, how many permits are
-- available. No step changes its expiry.
-- include note

-- Redisson's waiters read how many there are, as an int: a negative one, or one that does not fit, would be an exception there.
local function tell(channel, publish, value)
  if value > 0 then redis.pcall(publish, channel, string.format('%.0f', math.min(value, 2147483647))) end
end
