-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The common part of the scripts of the read-write lock `name`.
--
-- Each level of a reader has a hold key of its own, {name}:<field>:rwlock_timeout:<level>, which
-- expires with its lease: Redisson's readers set the lock's expiry from those of all readers when
-- they leave. A reader without a hold key is over. Levels above the 1,000th have no
-- key, so that no script has to look at more.
-- include braces
local name, LEVELS = KEYS[1], 1000

-- Its hold keys are this and the level.
local function hold_of(reader)
  return braced(name) .. ':' .. reader .. ':rwlock_timeout:'
end

-- The longest lease of a reader's levels, -2 when it is over. Another program may have written
-- any count.
local function lease_left(reader, count)
  local longest, hold = -2, hold_of(reader)
  for level = 1, math.min(tonumber(count) or 0, LEVELS) do
    longest = math.max(longest, redis.call('PTTL', hold .. level))
  end
  return longest
end
