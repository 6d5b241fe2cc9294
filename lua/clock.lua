-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Milliseconds of the server's clock, and numbers as text: tostring() rounds after 14 digits.
local function text(number)
  return string.format('%.0f', number)
end

-- The second result is the answer of TIME: seconds and microseconds.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time
end
