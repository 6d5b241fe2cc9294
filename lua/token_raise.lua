-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- Raise a counter of fencing tokens, unless it is larger.
--
-- KEYS counter
-- ARGV token
-- reply {1}     the next token is larger than this one
--
-- Keeps: a counter is never lowered, and has no expiry afterwards if it was raised.
-- include fence
local raised = fence_raise(KEYS[1], ARGV[1], '0')
return (type(raised) == 'string' or raised.ok) and {1} or raised
