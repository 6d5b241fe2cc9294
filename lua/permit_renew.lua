-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew the permits of many holds at once.
--
-- KEYS name...
-- ARGV lease_ms ids...     one lease for all, and for each name the ids of a hold, 16 bytes each,
--                          one after the other
-- reply {index, left, ...}  two for each hold that lacks a permit: its position from 1, and how
--                           many it has left, -1 when none.
--                           An empty reply means that all were renewed.
--
-- Keeps: never brings back a permit that is gone or has expired, never shortens one; each is
-- written, so that the error of a replica, or of a server that takes no writes, is noticed. Trouble
-- with one name's keys stops no other renewal. Works at maxmemory: ZADD may be refused there, but
-- not behind another write, so the first one removes an id that no permit has.
-- include permit
local lease, now, differ = tonumber(ARGV[1]), now_ms(), {}
redis.pcall('ZREM', ids_of(KEYS[1]), '')

local function renew(ids, id)
  local score = redis.pcall('ZSCORE', ids, id)
  if type(score) == 'table' then
    return not string.find(score.err, 'WRONGTYPE', 1, true) and score
  end
  if not score or tonumber(score) <= now then return false end
  redis.call('ZADD', ids, text(math.max(tonumber(score), now + lease)), id)
  return true
end

for i = 1, #ARGV - 1 do -- further keys are only declared
  local name = KEYS[i]
  local ids, packed, left = ids_of(name), split(ARGV[i + 1]) or {}, 0
  for _, id in ipairs(packed) do
    local renewed = renew(ids, id)
    if type(renewed) == 'table' then return renewed end
    if renewed then left = left + 1 end
  end
  if left > 0 then outlive(name, ids, now, 0) end
  if left < #packed or left == 0 then
    differ[#differ + 1] = i
    differ[#differ + 1] = left > 0 and left or -1
  end
end
return differ
