-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Finds the holder among a lock's `fields`: its field and its count go to `holder` and `count`,
-- which the script declares. Of several it is the writer. A read-write lock has a field "mode".
-- When no field is an owner's, the script answers an error.
--
-- Keeps: what is repeated is an owner's, and so bounded: a client drops its connection when an
-- answer is too long. Each busy answer runs this, and nearly all find one field with a client's id
-- of 36 bytes, as ours and Redisson's have: the rest is for others.
holder, count = fields[1], fields[2]
if fields[3] or count ~= '1' or #holder > 60 or not string.find(holder, '^:%d+$', 37) then
  -- include owner
  holder = nil
  for at = 1, #fields, 2 do
    local field, value = fields[at], fields[at + 1]
    local is_better = not holder or string.sub(field, -6) == ':write'
    if is_better and is_owner(field) and is_count(value) then holder, count = field, value end
  end
  if not holder then
    -- include no_lock
    return no_lock_by(fields[1] == 'mode' and fields[3] or fields[1])
  end
end
