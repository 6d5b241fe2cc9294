-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- The greeting of a client with failover_grace_ms: in which term are the server's data, and how
-- long does its grace last? The first greeting of a term begins the grace.
--
-- KEYS (none)
-- ARGV grace_ms old_master_ms is_cluster
-- reply {1, left_ms, ends_ms, grace_ms, old_master_ms, id}
--                 left_ms: what is left of the grace, 0 when it is over; ends_ms: when it is over,
--                 by the server's clock; the next two: these options of the client that began the
--                 grace, or of one that came after it with others; id: the term
--
-- The term is the server's replication id: it is another one when a replica was promoted, and when
-- the server was started anew (Redis docs, "Replication ID explained"). The key says in which term
-- the grace was begun, and when it ends. It is data like all others: after a failover or a restart
-- it is missing, or has an older id. In a cluster the term stands in several keys, in slots that
-- the node serves, so that it is found, too, when some of these slots have moved. They are not
-- declared, since only the node knows which ones it serves. Where all of them have moved, a grace
-- begins anew.
--
-- A node without a slot that stays has no key. It may serve a slot that is on its way here, and may
-- have been started anew while it did. So it has a grace since its start; or, if it was a replica
-- once, one for each client that connects.
--
-- Keeps: one script compares the id and begins the grace, so that no client can come in between. A
-- later greeting makes the grace no longer, nor does a clock that steps back. Nothing is written
-- while the term and the options stay, and all of the keys stand. Works at maxmemory: SET may be
-- refused there, but not behind another write.
local grace_ms, old_master_ms, is_cluster = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local call = redis.call
-- include clock
-- include term_keys
local replication = call('INFO', 'replication')
local id = string.match(replication, 'master_replid:(%x+)')
if not id or not grace_ms then return redis.error_reply('HIRELOCK no replication id') end
local now, keys = now_ms(), is_cluster and term_keys() or {'hirelock_term'}

if not keys[1] then
  local up_s = string.match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  local was_replica = not string.find(replication, 'master_replid2:0+%s')
  local served_ms = (was_replica or not up_s) and 0 or math.max(0, up_s - 1) * 1000
  local left = math.max(0, grace_ms - served_ms)
  return {1, left, now + left, grace_ms, tonumber(old_master_ms), id}
end

local found, ends, said_grace, said_old = 0, now + grace_ms, ARGV[1], old_master_ms
for at = 1, #keys do
  local said = string.match(call('GET', keys[at]) or '', '^' .. id .. ' (%d+ %d+ %d+)$')
  if said then
    ends, said_grace, said_old = string.match(said, '(%d+) (%d+) (%d+)')
    found = found + 1
  end
end

-- The options of who began the grace stay while it lasts: they say how long it lasts at most.
ends = math.min(tonumber(ends), now + tonumber(said_grace))
local left = math.max(0, ends - now)
local has_others = said_grace ~= ARGV[1] or said_old ~= old_master_ms
if found < #keys or (left == 0 and has_others) then
  local options = left == 0 and {ARGV[1], old_master_ms} or {said_grace, said_old}
  for at = 1, #keys do
    call('PERSIST', keys[at])
    call('SET', keys[at], table.concat({id, text(ends), unpack(options)}, ' '))
  end
end
return {1, left, ends, tonumber(said_grace), tonumber(said_old), id}
