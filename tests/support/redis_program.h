/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The redis-server that the tests run: HL_REDIS_SERVER in the environment, or the one in PATH. */
#ifndef HL_TEST_REDIS_PROGRAM_H
#define HL_TEST_REDIS_PROGRAM_H

#include <stdbool.h>

const char *redis_program(void);

/* Does it know this line of redis.conf? Each question starts the program, which ends at the next
 * line. */
bool redis_program_knows(const char *line);

/* Has it sharded pub/sub, and all else that is new in Redis 7.0 (Valkey is younger)? */
bool redis_program_is_7(void);

#endif
