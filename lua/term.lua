-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The greeting of a client with failover_grace_ms: in which term are the server's data, and how
-- long does its grace last? The first greeting of a term begins the grace.
--
-- KEYS (none)
-- ARGV grace_ms is_cluster
-- reply {1, left_ms, ends_ms, id}
--                 left_ms: what is left of the grace, 0 when it is over; ends_ms: when it is over, by
--                 the server's clock; id: the term
--
-- The term is the server's replication id: it is another one when a replica was promoted, and when
-- the server was started anew (Redis docs, "Replication ID explained"). The key says in which term
-- the grace was begun, and when it ends. It is data like all others: after a failover or a restart it
-- is missing, or has an older id. In a cluster each node has a key of its own: the first one of a row
-- that the node serves. It is not declared, since only the node knows which one that is.
--
-- Keeps: one script compares the id and begins the grace, so that no client can come in between. A
-- later greeting makes the grace no longer. Nothing is written while the term stays, so that a
-- client can connect at maxmemory.
local grace_ms, is_cluster = tonumber(ARGV[1]), ARGV[2] == '1'
local call, TAGS = redis.call, 4096
-- include clock
local id = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
if not id or not grace_ms then return redis.error_reply('HIRELOCK no replication id') end

local key, said = 'hirelock_term', nil
for tag = 0, TAGS - 1 do
  if is_cluster then key = 'hirelock_term:{' .. tag .. '}' end
  said = redis.pcall('GET', key)
  if type(said) ~= 'table' then break end
  if not is_cluster or not string.find(said.err, 'non local key', 1, true) then return said end
end
local now = now_ms()
if type(said) == 'table' then return {1, 0, now, id} end -- it serves no slots

local term, ends = string.match(said or '', '^(%x+) (%d+)$')
if term ~= id then
  ends = now + grace_ms
  call('SET', key, id .. ' ' .. text(ends))
end
ends = math.min(tonumber(ends), now + grace_ms) -- the clock may have been set back
return {1, math.max(0, ends - now), ends, id}
