-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many holds at once.
--
-- KEYS name...
-- ARGV lease_ms field...      one lease for all, and a field for each name
-- reply {index, count, ...}   two for each hold whose count is not 1: its position from 1, and its
--                             count in Redis or -1 when it is gone. An empty reply means that all
--                             were renewed, with a count of 1.
--
-- Keeps: never creates a key, never shortens an expiry (GT does that since Redis 7; before, a
-- look at PTTL), and gives one back to a key that lost it by a PERSIST. A hold with a count of 0,
-- which has been released, is gone, and so is one whose key or count is not what we wrote: a change
-- by another program to one name stops no other renewal. A refused command is repeated without GT,
-- so that the error of a replica, or of a server that takes no writes, is noticed, and no old
-- answer passes for a renewal. An expiry is always written, so that a WAIT behind it asks for it.
-- include renewal

for i, name in ipairs(KEYS) do
  local count = pcall('HGET', name, argv[i + 1])
  if count ~= '1' then
    if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
      return count
    end
    count = type(count) == 'string' and tonumber(count) or -1
    count = count > 0 and count or -1
    differ[#differ + 1] = i
    differ[#differ + 1] = count
  end
  if count ~= -1 then
    local moved = pcall(expire, name, at, 'GT')
    if moved ~= 1 then
      local left = call('PTTL', name)
      call('PEXPIRE', name, math.max(left, lease))
    end
  end
end
return differ
