/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A test's blocking connection to its server. It connects at the first command, and again after
 * the server has closed it; a mutex makes it usable from any thread.
 */
#ifndef HL_TEST_REDIS_LINK_H
#define HL_TEST_REDIS_LINK_H

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdarg.h>

struct redis_link {
    pthread_mutex_t mutex;
    char path[100];
    redisContext *context;
};

void redis_link_init(struct redis_link *link, const char *socket_path);
void redis_link_deinit(struct redis_link *link);

/* The caller frees the reply by freeReplyObject(); NULL when the server did not answer. */
redisReply *redis_link_command(struct redis_link *link, const char *format, va_list args);
redisReply *redis_link_send(struct redis_link *link, const char *bytes, size_t length);

/* Closes the connection; the next command connects again. */
void redis_link_drop(struct redis_link *link);

/* A connection of the caller's own, logged in like the link; NULL when the server does not answer.
 */
redisContext *redis_link_connect(const char *socket_path);

#endif
