-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take all the permits there are; a debt (a negative number of permits) is forgiven.
--
-- KEYS name
-- ARGV notes id note_ms settled...
-- reply {1, '12'}     so many were there, now or when an earlier copy came; a negative number was a
--                     debt
--
-- Keeps: works at maxmemory.
-- include semaphore
local text = number()
if not text then return no_number() end

forget(4)
if text == '0' or not note(text) then return {1, redis.call('GET', NOTE) or '0'} end
local _, refusal = once('DECRBY', name, text)
return refusal or {1, text}
