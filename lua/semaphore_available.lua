-- SPDX-FileCopyrightText: hirelock contributors
-- SPDX-License-Identifier: MIT
-- How many permits are there?
--
-- KEYS name
-- reply {1, '12'}     none where there is no semaphore; less than none after a negative add
local text = number()
return text and {1, text} or no_number()
