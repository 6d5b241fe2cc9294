-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Renew many holds at once in the grace after a failover, and write anew those that the server
-- lost.
--
-- KEYS name...
-- ARGV lease_ms ends_ms, for each name: field count
--      ends_ms   when the grace is over, by the server's clock
--      count     the levels of the hold; 0: it is only renewed, as the server has had it in this
--                term
-- reply {index, count, ...}   as lock_renew
--
-- Keeps: in the grace nobody takes a lock that is free. So whatever stands there of others is older
-- than the hold, and nobody believes in it any more; it is removed. When the grace is over, as for
-- a request that runs late, this is a renewal only. A key that is no hash is left alone: the hold
-- is gone. A writer leaves the fields of its own client's readers, since an owner that writes may
-- read. No step shortens the expiry of the hold; what an older owner left of its own goes with it.
local call, pcall, argv, differ = redis.call, redis.pcall, ARGV, {}
local lease_ms, lease = argv[1], tonumber(argv[1])
-- include clock
local in_grace = now_ms() < tonumber(argv[2])

-- May this field stay beside the hold's? `client` is a writer's.
local function may_stay(other, client)
  return client and string.sub(other, 1, #client + 1) == client .. ':'
    and string.find(other, '^%-?%d+$', #client + 2)
end

-- The key is never deleted: while its slot moves away, no command may look for a key that is gone.
local function write_anew(name, field, count)
  local client = string.match(field, '^(.*):[^:]*:write$')
  call('HDEL', name, field) -- at maxmemory a script that has freed memory may go on writing
  call('HSET', name, field, count)
  for _, other in ipairs(call('HKEYS', name)) do
    if other ~= field and not may_stay(other, client) then call('HDEL', name, other) end
  end
  if client then call('HSET', name, 'mode', 'write') end
  local expiry = pcall('PEXPIRE', name, lease_ms)
  if expiry ~= 1 then
    call('DEL', name)
    return expiry
  end
end

for i, name in ipairs(KEYS) do
  local field, wanted = argv[2 * i + 1], argv[2 * i + 2]
  local count = pcall('HGET', name, field)
  if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
    return count
  end
  local is_hash = type(count) ~= 'table'
  count = type(count) == 'string' and tonumber(count) or -1
  if count > 0 then
    call('PEXPIRE', name, math.max(call('PTTL', name), lease))
    if in_grace and wanted ~= '0' and count ~= tonumber(wanted) then
      call('HSET', name, field, wanted)
      count = tonumber(wanted)
    end
  elseif in_grace and is_hash and wanted ~= '0' then
    local refused = write_anew(name, field, wanted)
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
