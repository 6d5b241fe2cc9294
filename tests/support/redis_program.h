/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The redis-server that the tests run: HL_REDIS_SERVER in the environment, or the one in PATH. */
#ifndef HL_TEST_REDIS_PROGRAM_H
#define HL_TEST_REDIS_PROGRAM_H

const char *redis_program(void);

/* By this tests skip: 7.0.15 is 70015. */
int redis_program_version(void);

#endif
