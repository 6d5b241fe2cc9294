-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Writing data behind a fence.
--
-- KEYS ... key fence
-- ARGV ... value token expire_ms remember_ms
--      fence        a key of ours that remembers the largest token that wrote; its slot is the
--                   data's
--      token        the writer's; 0: it has none, and the fence is left alone
--      expire_ms    how long the value stands; 0: until it is written again
--      remember_ms  how long the token is remembered after the last write; 0: for ever
--
-- fence_write() returns 1 when it is written, a larger token (a string) that was there before, or
-- an error as pcall gives it.
--
-- Keeps: the fence is raised before the value is written, so that no refusal leaves a value that
-- an older token may overwrite; it is never lowered, and not forgotten earlier than any writer
-- asked for. Tokens are compared by parts of ten digits at most: Lua's numbers are exact up to
-- 2^53, tokens go to 2^63; and its order of strings is the locale's.
local function fence_is_less(a, b)
  if #a ~= #b then return #a < #b end
  local high, other = tonumber(string.sub(a, 1, 10)), tonumber(string.sub(b, 1, 10))
  if high ~= other then return high < other end
  return (tonumber(string.sub(a, 11)) or 0) < (tonumber(string.sub(b, 11)) or 0)
end

local function fence_raise(fence, token, remember_ms)
  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then return last end
  if last and (#last > 19 or not string.find(last, '^[1-9]%d*$')) then
    return {err = 'WRONGTYPE a fence that holds no token'}
  end
  if last and fence_is_less(token, last) then return last end
  local left = redis.pcall('PTTL', fence)
  if type(left) == 'table' then return left end
  if remember_ms == '0' or left == -1 then return redis.pcall('SET', fence, token) end
  local remembered = string.format('%.0f', math.max(left, tonumber(remember_ms)))
  return redis.pcall('SET', fence, token, 'PX', remembered)
end

local function fence_write(key, fence, value, token, expire_ms, remember_ms)
  local done = token == '0' and {ok = 'OK'} or fence_raise(fence, token, remember_ms)
  if not done.ok then return done end
  if expire_ms == '0' then
    done = redis.pcall('SET', key, value)
  else
    done = redis.pcall('SET', key, value, 'PX', expire_ms)
  end
  return done.ok and 1 or done
end
