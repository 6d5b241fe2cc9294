-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- A release that keeps the key: some levels of the hold are left, with at least this lease; or
-- none, and the key stays for rest_ms with a count of 0.
--
-- Keeps: works at maxmemory, for a script that has written (PEXPIRE) may go on writing. A repeated
-- command changes nothing.
local function leave_levels(name, field, count, want, lease_ms, rest_ms)
  local ms = rest_ms
  if want > 0 then ms = math.max(redis.call('PTTL', name), tonumber(lease_ms)) end
  redis.call('PEXPIRE', name, ms)
  if count > want then redis.call('HINCRBY', name, field, want - count) end
  return {1, '', -1}
end
