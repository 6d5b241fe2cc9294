/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* SHA-1, for the fake server's answer to SCRIPT LOAD. */
#ifndef HL_TEST_SHA1_H
#define HL_TEST_SHA1_H

#include <stddef.h>

void sha1_hex(const void *bytes, size_t length, char ret_hex[41]);

#endif
