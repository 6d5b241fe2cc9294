-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- lease_left() of another owner's reader, whose hold keys no caller can declare. nil: they cannot
-- be seen, for the slot moves and they may be at the other node. Such a reader counts as living.
local function other_left(reader, count)
  local longest, hold = -2, hold_of(reader)
  for level = 1, math.min(tonumber(count) or 0, LEVELS) do
    local left = redis.pcall('PTTL', hold .. level)
    if type(left) == 'table' then return nil end
    longest = math.max(longest, left)
  end
  return longest
end
