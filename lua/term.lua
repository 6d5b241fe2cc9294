-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The greeting of a client with failover_grace_ms: in which term are the server's data, and how
-- long does its grace last? The first greeting of a term begins the grace.
--
-- KEYS (none)
-- ARGV grace_ms is_cluster
-- reply {1, left_ms, ends_ms, id}
--                 left_ms: what is left of the grace, 0 when it is over; ends_ms: when it is over,
--                 by the server's clock; id: the term
--
-- The term is the server's replication id: it is another one when a replica was promoted, and when
-- the server was started anew (Redis docs, "Replication ID explained"). The key says in which term
-- the grace was begun, and when it ends. It is data like all others: after a failover or a restart
-- it is missing, or has an older id. In a cluster the term stands in several keys of a row, the
-- first ones that the node serves, and is looked for in all of the row: so it is found, too, when
-- some of their slots have moved. They are not declared, since only the node knows which ones it
-- serves.
--
-- Keeps: one script compares the id and begins the grace, so that no client can come in between. A
-- later greeting makes the grace no longer, nor does a clock that steps back. Nothing is written
-- while the term stays and stands where it is looked for first. Works at maxmemory: SET may be
-- refused there, but not behind another write.
local grace_ms, is_cluster = tonumber(ARGV[1]), ARGV[2] == '1'
local call, pcall, ROW, COPIES = redis.call, redis.pcall, 1024, 8
-- include clock
local id = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
if not id or not grace_ms then return redis.error_reply('HIRELOCK no replication id') end

local served, ends = {}, nil
for tag = 0, (is_cluster and ROW or 1) - 1 do
  local key = is_cluster and 'hirelock_term:{' .. tag .. '}' or 'hirelock_term'
  local said = pcall('GET', key)
  if type(said) ~= 'table' then
    local term, at = string.match(said or '', '^(%x+) (%d+)$')
    served[#served + 1] = key
    if term == id then
      ends = tonumber(at)
      break
    end
  elseif not is_cluster or not string.find(said.err, 'non local key', 1, true) then
    return said
  end
end

local now = now_ms()
if not served[1] then return {1, 0, now, id} end -- it has no slots
local is_new = not ends
ends = math.min(ends or now + grace_ms, now + grace_ms)
if is_new or served[2] then
  for copy = 1, math.min(#served, COPIES) do
    call('PERSIST', served[copy])
    call('SET', served[copy], id .. ' ' .. text(ends))
  end
end
return {1, math.max(0, ends - now), ends, id}
