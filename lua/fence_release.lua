-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Write data if this field still holds the lock, and release the lock.
--
-- KEYS name key fence
-- ARGV those of lock_release, with want = 0; and last value token expire_ms remember_ms. Behind
--      by_clock may stand ends_ms: the hold's lease lasts, and it is written for though the server
--      has lost it, until the grace is over at this time of the server's
-- reply {0}                           this field holds nothing: nothing is written
--       {1, next, foreign, wrote}     released, as lock_release says it; wrote: 1 written; 0 not,
--                                     for no hold stands any more (the
--                                     key rests, by an earlier copy, or another program wrote the
--                                     count); or a larger token that
--                                     was there before, as a string; or the error with which the
--                                     value was refused
--
-- Keeps: the next holder finds the value, or it is never written: a repeated command finds the
-- field gone, or a count of 0. If Redis refuses the value, the lock is still released. The value
-- is first, so at maxmemory it is refused, and the release is not.
local function release()
  -- include lock_release
end

-- include fence

local name, key, fence = unpack(KEYS)
local field = ARGV[1]
local value, token, expire_ms, remember_ms = unpack(ARGV, #ARGV - 3)
for _ = 1, 4 do table.remove(ARGV) end

-- include clock
local wrote, ends_ms, count = 0, tonumber(ARGV[15] or ''), redis.call('HGET', name, field)
local was_valid = not count and ends_ms and now_ms() < ends_ms -- nobody has taken it since
if (tonumber(count or '') or 0) > 0 or was_valid then
  wrote = fence_write(key, fence, value, token, expire_ms, remember_ms)
end
local done = release()
if was_valid then return {1, '', -1, wrote} end
if done[1] == 1 then done[4] = wrote end
return done
