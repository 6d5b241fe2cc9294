/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Ears: connections of the test's own to `server`, which hear what is published. redisFree() ends
 * an ear. */
#ifndef HL_TEST_EAR_H
#define HL_TEST_EAR_H

#include "redis_link.h"

/* Subscribes to channels, "a b c", of one slot: the scripts count the ear as a listener. */
redisContext *ear_open(const char *channels);

/* Subscribes by a pattern: no script counts the ear. */
redisContext *ear_open_unseen(const char *pattern);

/* "channel text" of the next message, which comes soon; borrowed until the next call. */
const char *ear_next(redisContext *ear);

/* Checks the next message. */
void ear_check(redisContext *ear, const char *channel, const char *text);

/* Checks that nothing else was published so far: the next message is one that is sent now. */
void ear_check_end(redisContext *ear, const char *channel);

#endif
