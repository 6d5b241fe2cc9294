-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- May a force release delete this key? Only when each of its fields is of a client with a UUID, as
-- ours and Redisson's are: another program's hash under the name of a lock stays.
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
