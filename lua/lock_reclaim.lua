-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many holds at once in the grace after a failover, and write anew those that the server
-- lost.
--
-- KEYS name...
-- ARGV lease_ms, for each name: field count until_ms beside
--      count     the levels of the hold; 0: it is only renewed, as the server has had it in this
--                term
--      until_ms  so long the hold is believed in, and the grace lasts, by the server's clock
--      beside    of the other half of a read-write lock: the field of the hold's owner, if that
--                has both; else ''
-- reply {index, count, ...}   as lock_renew
--
-- Keeps: in the grace nobody takes a lock that is free. So whatever stands there of others is older
-- than the hold, and nobody believes in it any more; it is removed. When the hold is over, as for a
-- request that runs late, this is a renewal only: others may have got the lock. A key that is no
-- hash is left alone: the hold is gone. A writer leaves the field of its own reading, for an owner
-- that writes may read. No step shortens the expiry of the hold; what an older owner left of its
-- own goes with it.
local call, pcall, argv, differ = redis.call, redis.pcall, ARGV, {}
local lease_ms, lease = argv[1], tonumber(argv[1])
-- include clock
local now = now_ms()

-- The key is never deleted: while its slot moves away, no command may look for a key that is gone.
local function write_anew(name, field, count, beside)
  call('HDEL', name, field) -- at maxmemory a script that has freed memory may go on writing
  call('HSET', name, field, count)
  for _, other in ipairs(call('HKEYS', name)) do
    if other ~= field and other ~= beside then call('HDEL', name, other) end
  end
  if string.sub(field, -6) == ':write' then call('HSET', name, 'mode', 'write') end
  local expiry = pcall('PEXPIRE', name, lease_ms)
  if expiry ~= 1 then
    call('DEL', name)
    return expiry
  end
end

for i, name in ipairs(KEYS) do
  local field, wanted, until_ms, beside = unpack(argv, 4 * i - 2, 4 * i + 1)
  local count, is_believed = pcall('HGET', name, field), now < tonumber(until_ms)
  if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
    return count
  end
  local is_hash = type(count) ~= 'table'
  count = type(count) == 'string' and tonumber(count) or -1
  if count > 0 then
    call('PEXPIRE', name, math.max(call('PTTL', name), lease))
    if is_believed and wanted ~= '0' and count ~= tonumber(wanted) then
      call('HSET', name, field, wanted)
      count = tonumber(wanted)
    end
  elseif is_believed and is_hash and wanted ~= '0' then
    local refused = write_anew(name, field, wanted, beside)
    if refused then return refused end
    count = tonumber(wanted)
  else
    count = -1
  end
  if count ~= 1 then
    differ[#differ + 1] = i
    differ[#differ + 1] = count
  end
end
return differ
