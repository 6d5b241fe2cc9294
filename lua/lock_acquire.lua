-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire the lock, reenter it, or extend its lease; or enter the queue for it.
--
-- KEYS name
-- ARGV field lease_ms want queue queue_ms mailbox [token_key tokens [tag_key [publish [by_clock
--      [sign_ms]]]]]
--      want       the hold count wanted, absolute: a repeated command changes nothing
--      queue_ms   how long the queue stands without being asked for; 0: do not queue
--      mailbox    the name of a client's own channel is this and the client's id
--      tokens     how many fencing tokens are wanted: one for each hold that may follow without a
--                 request; none with token_key ''
--      tag_key    the key of the holder's tag, for a caller that wants to know it; else ''
--      publish    the command to publish with, in a cluster; else ''
--      by_clock   1: tokens are no lower than the server's clock
--      sign_ms    no message reaches this waiter: so long after a request it is taken to live
-- reply {1, fresh[, token]}
--                 held by this field, with at least this count and this lease; fresh is 1 when it
--                 was free; token: the last one of those wanted, as text, for a number loses digits
--                 above 2^53
--       {-1}      want > 1, but the outer hold is gone
--       {0, pttl_ms, s, us, holder, count[, tag]}
--                 held by another field, at this time of the server; the tag is not looked at
--
-- Keeps: a key of this lock never lacks an expiry, and no step shortens one. What gives the lock
-- also writes, so that a WAIT behind it asks for all of the lock. An expiry that is
-- refused (by ACL) takes the key back. An acquire that finds no key forgets the queue: its living
-- members ask again, its dead ones would cost a claim each. The queue is no KEY, and what is done
-- to it may be refused: then there is none.
local name = KEYS[1]
local field, lease_ms, want, queue, queue_ms, mailbox, token_key, tokens, tag_key, publish,
  by_clock, sign_ms = unpack(ARGV)
-- include lease

-- include token

local left = redis.call('PTTL', name)
if left == -2 and wanted == 1 then
  local token = draw(redis.call, token_key, tokens, by_clock)
  redis.call('HSET', name, field, want)
  local expiry = redis.pcall('PEXPIRE', name, lease_ms)
  if expiry ~= 1 then
    redis.call('DEL', name)
    return expiry
  end
  redis.pcall('DEL', queue)
  return {1, 1, token}
end

local fields
-- include fields
for at = 1, #fields, 2 do
  if fields[at] == field then
    redis.call('PEXPIRE', name, math.max(left, lease))
    local more = wanted - (tonumber(fields[at + 1]) or 0)
    if more > 0 then redis.call('HINCRBY', name, field, more) end
    return {1, 0, draw(redis.call, token_key, tokens, by_clock)}
  end
end
if wanted > 1 then return {-1} end

local holder, count
-- include holder
-- include queue
-- include busy
