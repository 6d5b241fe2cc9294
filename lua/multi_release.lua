-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Let go of several locks at once, where nobody stands in the queue for them; what somebody waits for is left to lock_release, which
-- hands it on.
--
-- KEYS name...
-- ARGV publish numsub, and for each name: field channel queue own_channel courtesy
--      channel      Redisson's, which all who wait listen to; own_channel is listened to by us alone
--      courtesy     1: look whether somebody of Redisson's waits
-- reply {item...}, one for each name:
--       {1, '', strangers}   done; strangers: how many of Redisson's listen, -1 when it was not looked at
--       {0}                  this field holds nothing, and queues no more
--       {2}                  somebody stands in the queue: left as it is
--
-- Keeps: works at maxmemory. All names are looked at before anything is written, so a key that is no lock stops everything. The
-- messages are last and their refusal is no failure: the keys are gone, and waiters poll.
local call, pcall, argv, items = redis.call, redis.pcall, ARGV, {}

for i, name in ipairs(KEYS) do
  local at = 5 * i - 2
  if not call('HGET', name, argv[at]) then
    items[i] = {0}
  else
    local waiting = pcall('ZCARD', argv[at + 2])
    items[i] = {type(waiting) == 'number' and waiting > 0 and 2 or 1, '', -1}
  end
end
for i, name in ipairs(KEYS) do
  local status, at = items[i][1], 5 * i - 2
  if status == 1 then
    call('DEL', name)
  elseif status == 0 then
    pcall('ZREM', argv[at + 2], argv[at])
  else
    items[i] = {2}
  end
end
for i in ipairs(KEYS) do
  local item, at = items[i], 5 * i - 2
  if item[1] == 1 then
    local heard = pcall(argv[1], argv[at + 1], '0')
    if heard == 0 then
      item[3] = 0
    elseif argv[at + 4] == '1' then
      local listeners = pcall('PUBSUB', argv[2], argv[at + 1], argv[at + 3])
      item[3] = listeners.err and 0 or math.max(0, listeners[2] - listeners[4])
    end
  end
end
return items
