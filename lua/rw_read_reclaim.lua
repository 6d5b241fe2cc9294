-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many read holds at once in the grace after a failover, and write anew those that the server
-- lost.
--
-- KEYS name...                a name as often as it has holds
-- ARGV lease_ms, for each hold: field count until_ms beside      as lock_reclaim
-- reply {index, count, ...}   as rw_read_renew
--
-- Keeps: what lock_reclaim keeps, and no step shortens an expiry. Other readers stay, for they may
-- be as valid as this one; and the writer's field of the hold's owner, who may read beside it.
local call, pcall, argv, differ = redis.call, redis.pcall, ARGV, {}
local lease_ms, lease = argv[1], tonumber(argv[1])
-- include clock
-- include rw
local now = now_ms()

local function extend(key) -- false: it is not there
  local left = call('PTTL', key)
  if left == -2 then return false end
  call('PEXPIRE', key, math.max(left, lease))
  return true
end

local function write_anew(field, count, beside)
  local has_writer, hold = false, hold_of(field)
  call('HDEL', name, field) -- at maxmemory a script that has freed memory may go on writing
  for level = 1, math.min(tonumber(count), LEVELS) do
    if not extend(hold .. level) then call('SET', hold .. level, '1', 'PX', lease_ms) end
  end
  call('HSET', name, field, count)
  for _, other in ipairs(call('HKEYS', name)) do
    local is_writer = string.sub(other, -6) == ':write'
    has_writer = has_writer or other == beside
    if is_writer and other ~= beside then call('HDEL', name, other) end
  end
  call('HSET', name, 'mode', has_writer and 'write' or 'read')
  return call('PEXPIRE', name, math.max(call('PTTL', name), lease))
end

for i = 1, (#argv - 1) / 4 do -- further keys are only declared
  name = KEYS[i]
  local field, wanted, until_ms, beside = unpack(argv, 4 * i - 2, 4 * i + 1)
  local is_believed = now < tonumber(until_ms)
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
  if is_believed and is_hash and wanted ~= '0' and (not is_there or count ~= tonumber(wanted)) then
    write_anew(field, wanted, beside)
    count, is_there = tonumber(wanted), true
  end
  if count ~= 1 or not is_there then
    differ[#differ + 1] = i
    differ[#differ + 1] = is_there and count or -1
  end
end
return differ
