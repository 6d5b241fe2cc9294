-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Give permits back; also what a wait sends that is over, for it may have got them meanwhile.
--
-- KEYS name
-- ARGV ids channel publish
--      ids        16 bytes for each permit, one after the other
-- reply {0, fates}        none of them is out
--       {1, fates, -1}    some are given back now; '' when all are
--                         fates: a letter for each id, in their order: 1 given back, x it had expired, 0 it is not out
--
-- Keeps: a permit is given back once, whether it expires or is released, and however often that is said. Works at maxmemory:
-- ZREM before INCRBY, since a script that has written may go on writing. The message is last and its refusal is no failure.
local key, packed, ids, now = KEYS[1], split(ARGV[1]), ids_of(KEYS[1]), now_ms()
if not packed then return redis.error_reply('HIRELOCK bad ids') end

local fates, given = {}, 0
for i, id in ipairs(packed) do
  local score = redis.call('ZSCORE', ids, id)
  fates[i] = not score and '0' or tonumber(score) <= now and 'x' or '1'
end

local available, expired = reclaim(key, ids, now)
if not available then return NO_PERMITS end
for i, id in ipairs(packed) do
  if fates[i] == '1' then given = given + redis.call('ZREM', ids, id) end
end
if given > 0 then redis.call('INCRBY', key, given) end
if given + expired > 0 then tell(ARGV[3], ARGV[2], available + given) end
if given == 0 then return {0, table.concat(fates)} end
return {1, given == #packed and '' or table.concat(fates), -1}
