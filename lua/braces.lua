-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Redisson derives keys from a name in braces, so that Redis Cluster puts them into one slot. A
-- name that has a brace itself stands as it is.
local function braced(name)
  return string.find(name, '{', 1, true) and name or '{' .. name .. '}'
end
