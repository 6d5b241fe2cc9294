-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many read holds at once in the grace after a failover, and write anew those that the server
-- lost.
--
-- KEYS name...                a name as often as it has holds
-- ARGV lease_ms ends_ms, for each hold: field count      as lock_reclaim
-- reply {index, count, ...}   as rw_read_renew
--
-- Keeps: what lock_reclaim keeps, and no step shortens an expiry. Other readers stay, for they may
-- be as valid as this one; and a writer of the same client, whose owner may read beside it.
local call, pcall, argv, differ = redis.call, redis.pcall, ARGV, {}
local lease_ms, lease = argv[1], tonumber(argv[1])
-- include clock
-- include rw
local in_grace = now_ms() < tonumber(argv[2])

local function extend(key) -- false: it is not there
  local left = call('PTTL', key)
  if left == -2 then return false end
  call('PEXPIRE', key, math.max(left, lease))
  return true
end

-- May this field stay beside a reader's? Other readers may, and a writer of the same client.
local function may_stay(other, client)
  return string.sub(other, -6) ~= ':write' or string.sub(other, 1, #client + 1) == client .. ':'
end

local function write_anew(field, count)
  local client, hold = string.match(field, '^(.*):[^:]*$') or '', hold_of(field)
  local has_writer = false
  call('HDEL', name, field) -- at maxmemory a script that has freed memory may go on writing
  for level = 1, math.min(tonumber(count), LEVELS) do
    if not extend(hold .. level) then call('SET', hold .. level, '1', 'PX', lease_ms) end
  end
  call('HSET', name, field, count)
  for _, other in ipairs(call('HKEYS', name)) do
    if other ~= 'mode' and other ~= field and not may_stay(other, client) then
      call('HDEL', name, other)
    else
      has_writer = has_writer or string.sub(other, -6) == ':write'
    end
  end
  call('HSET', name, 'mode', has_writer and 'write' or 'read')
  return call('PEXPIRE', name, math.max(call('PTTL', name), lease))
end

for i = 1, (#argv - 2) / 2 do -- further keys are only declared
  name = KEYS[i]
  local field, wanted = argv[2 * i + 1], argv[2 * i + 2]
  local count, is_there, hold = pcall('HGET', name, field), false, hold_of(field)
  if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
    return count
  end
  local is_hash = type(count) ~= 'table'
  count = type(count) == 'string' and tonumber(count) or -1
  for level = 1, math.min(count, LEVELS) do
    is_there = extend(hold .. level) or is_there
  end
  if is_there then extend(name) end
  if in_grace and is_hash and wanted ~= '0' and (not is_there or count ~= tonumber(wanted)) then
    write_anew(field, wanted)
    count, is_there = tonumber(wanted), true
  end
  if count ~= 1 or not is_there then
    differ[#differ + 1] = i
    differ[#differ + 1] = is_there and count or -1
  end
end
return differ
