-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- May a force release delete this key? Only when each of its fields is of a client with a UUID, as
-- ours and Redisson's are: another program's hash under the name of a lock stays. And the message
-- to its holders' clients, "l name" in their mailboxes: what they held may be gone.
-- include owner
-- include no_lock
local X4, X8 = '%x%x%x%x', '%x%x%x%x%x%x%x%x'
local UUID = table.concat({'^' .. X8, X4, X4, X4, X4 .. X8}, '%-')

-- The error to answer, nil when all fields are.
local function no_force(fields)
  for at = 1, #fields, 2 do
    local field = fields[at]
    if field ~= 'mode' and not (is_owner(field) and string.find(field, UUID .. ':%-?%d')) then
      return no_lock_by(field)
    end
  end
end

-- mailbox: the text that makes a mailbox of a client's id; '': none hears. A refusal is no failure:
-- a renewal finds out.
local function tell_holders(fields, mailbox, publish)
  local told = {}
  for at = 1, #fields, 2 do
    local client = string.sub(fields[at], 1, 36)
    if mailbox ~= '' and fields[at] ~= 'mode' and not told[client] then
      told[client] = true
      redis.pcall(publish, mailbox .. client, 'l ' .. KEYS[1])
    end
  end
end
