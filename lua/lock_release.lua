-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Let go of the lock, or of some of its levels; also what a wait sends that is over, for it may have got the lock meanwhile.
--
-- KEYS name
-- ARGV field want lease_ms rest_ms channel publish
--      want      the hold count that is left, absolute; 0 ends the hold
--      lease_ms  of want > 0: the lease goes on for at least so long
--      rest_ms   of want = 0: 0 deletes the key; else it rests for so long, with count 0 and nobody inside
-- reply {1}      done, now or by an earlier copy of this command that left the key resting
--       {0}      this field holds nothing
--
-- Keeps: works at maxmemory (PEXPIRE before HINCRBY: a script that has written already may go on writing). The message is
-- last and its refusal is no failure: the key is gone, and waiters poll.
local count, want = redis.call('HGET', KEYS[1], ARGV[1]), tonumber(ARGV[2])
if not count then return {0} end
count = tonumber(count) or 0 -- a stranger may have written anything

if want > 0 then
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])))
  if count > want then redis.call('HINCRBY', KEYS[1], ARGV[1], want - count) end
  return {1}
end

if tonumber(ARGV[4]) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  if count > 0 then redis.call('HINCRBY', KEYS[1], ARGV[1], -count) end
  return {1}
end

redis.call('DEL', KEYS[1])
redis.pcall(ARGV[6], ARGV[5], '0')
return {1}
