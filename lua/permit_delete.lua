-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Delete the semaphore, and forget the permits that are out.
--
-- KEYS name
-- reply {1}     deleted
--       {0}     it was not there
--
-- Keeps: a key that is no semaphore stays. Works at maxmemory. No message: waiters can get no
-- permit.
-- include permit
local key, ids = KEYS[1], ids_of(KEYS[1])
redis.call('GET', key)
redis.call('ZCARD', ids)
return {redis.call('DEL', key, ids) > 0 and 1 or 0}
