-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Some fields of the lock, with their counts: of a hash of any size a bounded number. Returns the
-- next cursor, '0' at the end, the fields, and the error to answer if HSCAN may not be run (by
-- ACL).
local function page_of(cursor, match)
  local page = redis.pcall('HSCAN', name, cursor, 'MATCH', match, 'COUNT', '1000')
  if page.err then return '0', {}, page end
  return page[1], page[2]
end
