-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The keys of a term at a node of a cluster, which only serves keys of its own slots.
--
-- A key's tag is made from its slot: the slot's number is a CRC (Redis cluster specification), in
-- which each digit of a text of 14 digits 0 and 1 flips bits of its own. So each slot has one such
-- text, and FLIPS says which digits flip one bit of the slot.
local SLOTS, STRIDE, COPIES = 16384, 10125, 8
local SLOT_OF_ZEROS = 14707
local FLIPS = {8688, 14928, 8711, 14024, 4374, 989, 14716, 13052, 4343, 12471, 8694, 2152,
  8748, 12629}

local function key_in(slot)
  local rest, digits, key = bit.bxor(slot, SLOT_OF_ZEROS), 0, 'hirelock_term:{'
  for at = 0, 13 do
    if bit.band(bit.rshift(rest, at), 1) == 1 then digits = bit.bxor(digits, FLIPS[at + 1]) end
  end
  for at = 13, 0, -1 do
    key = key .. bit.band(bit.rshift(digits, at), 1)
  end
  return key .. '}'
end

-- Is this slot of the node one that stays? One that is on its way to another node serves only the
-- keys that have not gone yet.
local function serves(line, moving, slot)
  for at = 1, #line do
    if slot >= line[at][1] and slot <= line[at][2] then return not moving[slot] end
  end
  return false
end

-- The first slots of the node in one order of all slots, in which neighbours stand far apart: so
-- all clients choose the same ones, and of these few leave with a range of slots that moves away.
-- An empty list: the node serves no slot that stays.
local function term_keys()
  local myself = string.match(redis.call('CLUSTER', 'NODES'), '[^\n]* myself,[^\n]*') or ''
  local line, moving, keys, place = {}, {}, {}, 0
  for word in string.gmatch(myself, '%S+') do
    local first, last = string.match(word, '^(%d+)%-?(%d*)$')
    local leaves = string.match(word, '^%[(%d+)%->')
    place = place + 1
    if place > 8 and leaves then
      moving[tonumber(leaves)] = true
    elseif place > 8 and first then
      line[#line + 1] = {tonumber(first), tonumber(last) or tonumber(first)}
    end
  end
  for at = 0, line[1] and SLOTS - 1 or -1 do
    local slot = at * STRIDE % SLOTS
    if serves(line, moving, slot) then keys[#keys + 1] = key_in(slot) end
    if #keys == COPIES then break end
  end
  return keys
end
