-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Reads the hash at `name` into `fields`, which the script declares: the fields and their values,
-- none when there is no key.
--
-- Keeps: any other hash may have any number of fields, and a lock has few. Each busy answer runs
-- this, and one HRANDFIELD, which gives all fields where they are fewer than it is asked for, costs
-- less than HLEN and HGETALL. Those do it where HRANDFIELD is refused (by ACL, or by a Redis before
-- 6.2); HLEN may be refused too: then the number is not bounded.
fields = redis.pcall('HRANDFIELD', name, '65', 'WITHVALUES')
if fields.err or fields[129] then
  -- include no_lock
  local size = fields[129] and 65 or redis.pcall('HLEN', name)
  if type(size) == 'number' and size > 64 then return no_lock('a hash of more than 64 fields') end
  fields = redis.pcall('HGETALL', name)
  if fields.err then return no_hash(name, fields) end
end
