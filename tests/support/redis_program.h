/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The redis-server that the tests run: HL_REDIS_SERVER in the environment, or the one in PATH. */
#ifndef HL_TEST_REDIS_PROGRAM_H
#define HL_TEST_REDIS_PROGRAM_H

const char *redis_program(void);

/* 70015 for 7.0.15; a test that needs a newer version skips. */
int redis_program_version(void);

#endif
