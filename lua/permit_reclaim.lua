-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew the permits of many holds at once in the grace after a failover, and take anew those that
-- the server lost.
--
-- KEYS name...
-- ARGV lease_ms, for each name: ids count until_ms ''
--      ids as permit_renew, the rest as lock_reclaim
-- reply {index, left, ...}  as permit_renew
--
-- Keeps: a permit that is taken anew is one less that is available, as the number of all permits
-- stays; the number may be negative until old permits have expired. Without that number, as after a
-- start with an empty data set, nobody knows how many permits there are: the holds are gone. A time
-- to live of the semaphore lasts as long as they do, from now on.
-- include permit
local lease, now, differ = tonumber(ARGV[1]), now_ms(), {}
redis.pcall('ZREM', ids_of(KEYS[1]), '')

local function take_anew(name, ids, id)
  local available = redis.pcall('GET', name)
  if type(available) ~= 'string' or not string.find(available, '^-?%d+$') then return false end
  redis.call('ZADD', ids, text(now + lease), id)
  redis.call('DECRBY', name, 1)
  return true
end

local function renew(name, ids, id, may_take)
  local score = redis.pcall('ZSCORE', ids, id)
  if type(score) == 'table' then
    return not string.find(score.err, 'WRONGTYPE', 1, true) and score
  end
  if score and tonumber(score) > now then
    redis.call('ZADD', ids, text(math.max(tonumber(score), now + lease)), id)
    return true
  end
  if not may_take then return false end
  if score then -- it is out still, as nobody has taken it back
    redis.call('ZADD', ids, text(now + lease), id)
    return true
  end
  return take_anew(name, ids, id)
end

for i = 1, (#ARGV - 1) / 4 do -- further keys are only declared
  local name, packed, wanted = KEYS[i], split(ARGV[4 * i - 2]) or {}, ARGV[4 * i - 1]
  local ids, left, may_take = ids_of(name), 0, wanted ~= '0' and now < tonumber(ARGV[4 * i])
  for _, id in ipairs(packed) do
    local renewed = renew(name, ids, id, may_take)
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
