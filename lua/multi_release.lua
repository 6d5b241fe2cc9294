-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Release several locks at once, if no waiter is in their queues. A lock with a waiter is left to
-- lock_release, which grants it.
--
-- KEYS name...
-- ARGV publish numsub, and for each name: field channel queue own_channel yields
--      channel      Redisson's, to which all waiters subscribe; only our waiters subscribe to
--                   own_channel
--      yields       1: look whether a waiter of Redisson's is there
-- reply {item...}, one for each name:
--       {1, '', foreign}     done; foreign: the number of foreign waiters (Redisson's), -1 when
--                            they were not counted
--       {0}                  this field holds nothing, and queues no more
--       {2}                  a waiter is in the queue: not changed
--
-- Keeps: works at maxmemory. All names are looked at before anything is written, so a key that is
-- no lock stops everything. The messages are last and their refusal is no failure: the keys are
-- gone, and waiters poll.
local call, pcall, argv, items = redis.call, redis.pcall, ARGV, {}
local publish, numsub = argv[1], argv[2]
local names = {unpack(KEYS, 1, (#argv - 2) / 5)} -- the other keys are only declared
local function words_of(i) return unpack(argv, 5 * i - 2, 5 * i + 2) end

for i, name in ipairs(names) do
  local field, _, queue = words_of(i)
  if not call('HGET', name, field) then
    items[i] = {0}
  else
    local waiting = pcall('ZCARD', queue)
    items[i] = {type(waiting) == 'number' and waiting > 0 and 2 or 1, '', -1}
  end
end
for i, name in ipairs(names) do
  local status, field, _, queue = items[i][1], words_of(i)
  if status == 1 then
    call('DEL', name)
  elseif status == 0 then
    pcall('ZREM', queue, field)
  else
    items[i] = {2}
  end
end
for i, item in ipairs(items) do
  if item[1] == 1 then
    local _, channel, _, own_channel, yields = words_of(i)
    local heard = pcall(publish, channel, '0')
    if heard == 0 then
      item[3] = 0
    elseif yields == '1' then
      local listeners = pcall('PUBSUB', numsub, channel, own_channel)
      item[3] = listeners.err and 0 or math.max(0, listeners[2] - listeners[4])
    end
  end
end
return items
