-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Waiters of ours in a queue, from an answer of TIME.
--
-- A waiter is a member, its field; the score is its arrival, in microseconds. A sign of life is one
-- more member, "@field", whose score is when it ends, in microseconds, and 4e15: so it stands
-- behind all fields, and the queue needs no second key.
local function arrival_at(time)
  return time[1] .. string.sub('00000' .. time[2], -6)
end

local function sign_until(time, ms)
  return string.format('%.0f', 4e15 + time[1] * 1e6 + time[2] + ms * 1000)
end
