-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- How many permits are there?
--
-- KEYS name
-- reply {1, '12'}     '0' if there is no semaphore; may be negative after a negative add
-- include semaphore
local text = number()
return text and {1, text} or no_number()
