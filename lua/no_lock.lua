-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The error to answer when a key holds no lock.
local function no_lock(what)
  return redis.error_reply('WRONGTYPE the key holds no lock but ' .. what)
end

local function no_lock_by(field)
  local shown = string.gsub(string.sub(field, 1, 40), '[^%w:._-]', '?')
  return no_lock("a hash whose field '" .. shown .. "' is no owner's")
end

-- A command for hashes was refused: by ACL, or for what the key is.
local function no_hash(name, refused)
  if not string.find(refused.err, 'WRONGTYPE', 1, true) then return refused end
  return no_lock('a ' .. (redis.pcall('TYPE', name).ok or 'key of another type'))
end
