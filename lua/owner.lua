-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The content of a lock's hash: owners' fields and their counts. A field is "client:number", and
-- the number is any of Java's. A writer's ends in ":write", the field that stands for a
-- released reader in its minimum time in ":rest".
--
-- Keeps: any program may write the hash, and answers repeat both, so both are bounded. Clients'
-- ids, ours and Redisson's, have 36 bytes: each busy answer runs this, and to look for the number
-- in the whole field costs more.
local function is_owner(field)
  if #field > 255 then return false end
  local ending = string.byte(field, 37) == 58 and string.match(field, '^%-?%d+(:?%l*)$', 38)
    or string.match(field, '.:%-?%d+(:?%l*)$')
  return ending == '' or ending == ':write' or ending == ':rest'
end

local function is_count(value)
  return #value <= 20 and string.find(value, '^%-?%d+$') ~= nil
end
