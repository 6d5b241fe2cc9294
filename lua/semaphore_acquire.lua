-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Acquire permits for waiters, in the order of their arrival: for as many waiters as the permits
-- suffice.
--
-- KEYS name
-- ARGV notes id note_ms field queue sign_ms is_deaf waiters need... settled...
--      field     of the waiter; the words behind it: turns.lua
--      waiters   how many needs follow; a need is the number of permits that a waiter wants
-- reply {1, taken}                                     the sum of the first needs: those waiters
--                                                      are served
--       {1, -1, '0', '0', '', available, taken}       the same, and not enough is left for the next
--                                                     of them
--       {0, -1, '0', '0', '', available}              not enough for the first; or another's turn,
--                                                     and 0 available
--
-- Keeps: one that comes after it was undone takes nothing. Goes on at maxmemory: it makes nothing
-- that stays.
-- include semaphore
local field, queue, sign_ms, is_deaf = unpack(ARGV, 4, 7)
-- include turns
local waiters = tonumber(ARGV[8]) or 0
local lacks, last, taken, text = false, 8 + waiters, 0, number()
if last < 9 or last > #ARGV then return redis.error_reply('HIRELOCK bad number of waiters') end
if not text then return no_number() end
for i = 9, last do
  local need = string.find(ARGV[i], '^%d+$') and tonumber(ARGV[i]) or 0
  if need < 1 then return redis.error_reply('HIRELOCK bad number of permits') end
  if taken + need > tonumber(text) then
    lacks = true
    break
  end
  taken = taken + need
end

forget(last + 1)
local before = waiter_before(field)
if before then taken = 0 end
if taken > 0 and note(taken) then
  local left, refusal = once('DECRBY', name, taken)
  if refusal then return refusal end
  take_turn(field)
  if not lacks then return {1, taken} end
  return {1, -1, '0', '0', '', left, taken}
end
taken = tonumber(redis.call('GET', NOTE) or '0')
if taken > 0 then return {1, taken} end
line_up(field)
return {0, -1, '0', '0', '', before and '0' or text}
