-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many holds at once.
--
-- KEYS name...
-- ARGV field lease_ms count ...   three for each name; count is what this client believes
-- reply {index, count, ...}       two for each hold that is not as believed: its position from 1, and its count in Redis or
--                                 -1 when it is gone. An empty reply means that all were renewed as they are.
--
-- Keeps: never creates a key, never shortens an expiry (GT does that since Redis 7; before, a look at PTTL), and gives one back
-- to a key that a stranger's PERSIST left without. A hold that rests (count 0) is gone, and so is one whose key or count is
-- not what we wrote: a stranger's deed on one name stops no other's renewal. What was refused is written again without GT, so
-- that a replica, or a server that takes no writes, is heard, and no old answer passes for a renewal.
--
-- Runs for every hold of every process, so it looks up no global twice and counts only what is not as believed.
local call, pcall, argv, differ = redis.call, redis.pcall, ARGV, {}
for i, name in ipairs(KEYS) do
  local lease, count = argv[3 * i - 1], pcall('HGET', name, argv[3 * i - 2])
  if count ~= argv[3 * i] or count == '0' then
    if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then return count end
    count = type(count) == 'string' and tonumber(count) or -1
    count = count > 0 and count or -1
    differ[#differ + 1] = i
    differ[#differ + 1] = count
  end
  if count ~= -1 then
    local moved = pcall('PEXPIRE', name, lease, 'GT')
    if moved ~= 1 then
      local left = call('PTTL', name)
      if moved ~= 0 or left < tonumber(lease) then call('PEXPIRE', name, math.max(left, tonumber(lease))) end
    end
  end
end
return differ
