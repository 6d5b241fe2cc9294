-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release permits. A wait that is over sends this too, since it may have got them meanwhile.
--
-- KEYS name
-- ARGV ids channel publish [whole [field queue]]
--      ids        16 bytes for each permit, one after the other
--      whole      1: all of them or none
--      field      of a wait that is over, which may have lined up in this queue (turns.lua)
-- reply {0, fates}        none was released
--       {1, fates, -1}    some were released now; fates is '' when all were
--                         fates: a letter for each id, in their order: 1 it was out, x it had
--                         expired, 0 it is not out
--
-- Keeps: a permit comes back once, whether it expires or is released, and however often the command
-- is repeated. Works at maxmemory: ZREM before INCRBY, since a script that has written may go on
-- writing. The message is last and its refusal is no failure.
-- include permit
local key, ids, now = KEYS[1], ids_of(KEYS[1]), now_ms()
local packed, channel, publish, whole, field, queue = split(ARGV[1]), unpack(ARGV, 2)
if not packed then return redis.error_reply('HIRELOCK bad ids') end

local fates, out, given = {}, 0, 0
for i, id in ipairs(packed) do
  local score = redis.call('ZSCORE', ids, id)
  fates[i] = not score and '0' or tonumber(score) <= now and 'x' or '1'
  if fates[i] == '1' then out = out + 1 end
end

local available, expired = reclaim(key, ids, now)
if not available then return NO_PERMITS end
local gives = whole ~= '1' or out == #packed
for i, id in ipairs(packed) do
  if gives and fates[i] == '1' then given = given + redis.call('ZREM', ids, id) end
end
if given > 0 then redis.call('INCRBY', key, given) end
if given + expired > 0 then tell(channel, publish, available + given) end
if queue then redis.pcall('ZREM', queue, field, '@' .. field) end
if given == 0 then return {0, table.concat(fates)} end
return {1, given == #packed and '' or table.concat(fates), -1}
