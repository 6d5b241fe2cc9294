-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Reads the holder's tag into `tag`; nil if the caller does not ask for it. The script checks only
-- the tag's length, since any program may have written it.
local tag
if (tag_key or '') ~= '' then
  tag = redis.pcall('GET', tag_key)
  if type(tag) ~= 'string' or #tag > 512 then tag = nil end
end
