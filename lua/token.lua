-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Draws fencing tokens from a counter: the last one of `by`, as text, for a number loses digits
-- above 2^53; nil without a counter. `command` is redis.call or redis.pcall. by_clock '1': a
-- counter that is lower than the server's clock in nanoseconds is raised to that first. So tokens
-- rise also when a failover has lost the counter's last steps.
--
-- Keeps: a counter is never lowered. Numbers of 19 digits are compared as far as Lua knows them,
-- and the counter is left alone when it is close.
local function draw(command, counter, by, by_clock)
  if (counter or '') == '' then return nil end
  if by_clock == '1' then
    local time, last = redis.pcall('TIME'), redis.pcall('GET', counter)
    local clock = not time.err and time[1] .. string.sub('00000' .. time[2], -6) .. '000'
    last = type(last) ~= 'table' and tonumber(last or '0')
    if clock and last and tonumber(clock) - last > 1e6 then command('SET', counter, clock) end
  end
  local drawn = command('INCRBY', counter, by)
  return type(drawn) == 'number' and command('GET', counter) or nil
end
