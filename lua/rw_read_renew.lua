-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many read holds at once. (A write hold is one field of a hash with one lease, and is
-- renewed by lock_renew.)
--
-- KEYS name...                a name as often as it has holds
-- ARGV lease_ms field...      one lease for all, and a field for each name
-- reply {index, count, ...}   two for each hold whose count is not 1: its position from 1, and its
--                             count in Redis or -1 when it is gone. An empty reply means that all
--                             were renewed, with a count of 1.
--
-- Keeps: never creates a key, never shortens an expiry: Redisson's renewal may set the lock's
-- below the lease of a hold of ours, and this puts it back. A hold without hold keys is gone. Else
-- as lock_renew: a change by another program to one name stops no other renewal, and a refused
-- command is repeated without GT, so that the error of a server that takes no writes is noticed.
-- include renewal
-- include rw

local function extend(key) -- false: it is not there
  local moved = pcall(expire, key, at, 'GT')
  if moved == 1 then return true end
  local left = call('PTTL', key)
  if left == -2 then return false end
  call('PEXPIRE', key, math.max(left, lease))
  return true
end

for i = 1, #argv - 1 do -- further keys are only declared
  name = KEYS[i]
  local field = argv[i + 1]
  local count, is_there, hold = pcall('HGET', name, field), false, hold_of(field)
  if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
    return count
  end
  count = type(count) == 'string' and tonumber(count) or -1
  for level = 1, math.min(count, LEVELS) do
    is_there = extend(hold .. level) or is_there
  end
  if is_there then extend(name) end
  if count ~= 1 or not is_there then
    differ[#differ + 1] = i
    differ[#differ + 1] = is_there and count or -1
  end
end
return differ
