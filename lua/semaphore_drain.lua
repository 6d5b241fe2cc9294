-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Take all the permits there are; a debt (a negative number of permits) is forgiven.
--
-- KEYS name
-- ARGV notes id notes_ms settled...
-- reply {1, '12'}     so many were there, now or when an earlier copy came; a negative number was a debt
--
-- Keeps: works at maxmemory.
local noted = redis.call('HGET', notes, id)
if noted then return {1, noted} end
local text = available()
if not text then return no_number() end

forget(4)
if text == '0' then return {1, text} end
note(text)
local _, refusal = change('DECRBY', text)
return refusal or {1, text}
