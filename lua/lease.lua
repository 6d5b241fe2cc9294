-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Reads the arguments lease_ms and want, as the numbers `lease` and `wanted`. Both are judged
-- before anything is written, for an error after a write leaves the write behind. A lease has
-- digits only: PEXPIRE refuses 1e3, which Lua reads. Commands are given the text: to write a
-- number costs Redis more than the command.
local lease, wanted = string.find(lease_ms, '^%d+$') and tonumber(lease_ms), tonumber(want)
if not lease or lease < 1 or lease > 1e11 or not wanted or wanted < 1 then
  return redis.error_reply('HIRELOCK bad lease time or hold count')
end
