/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The words in which tests speak of locks. A test that begins with server_up() and ends with
 * server_down() has one server, `server`, and need not close what it opened by these functions.
 */
#ifndef HL_TEST_LOCK_SUPPORT_H
#define HL_TEST_LOCK_SUPPORT_H

#include <hirelock/hirelock.h>

#include "redis_probe.h"
#include "test.h"

extern struct redis_server *server;

/* For .init and .fini. server_down() stops the actors, frees the handles, closes the clients. */
void server_up(void);
void server_up_tcp(void);
void server_down(void);

/* Options with these fields set and the defaults for the rest. */
#define CLIENT(...) (&(hl_client_options){.size = sizeof(hl_client_options), __VA_ARGS__})
#define ACQUIRE(...) (&(hl_acquire_options){.size = sizeof(hl_acquire_options), __VA_ARGS__})

/* Each ends the test when it fails. options may be NULL. */
hl_client *open_client(const hl_client_options *options); /* of `server` */
hl_client *open_client_at(const char *url, const hl_client_options *options);
hl_lock *new_lock(hl_client *client, const char *name);
hl_lock *keep_lock(hl_lock *lock); /* one that was made otherwise */
hl_owner *new_owner(hl_client *client);
hl_cancel *new_cancel(void);

/* Of another handle: server_down() frees it, too. */
void *free_at_end(void *item, void (*free_item)(void *item));

/* To end one of them before the test ends. */
void close_client(hl_client *client);
void free_lock(hl_lock *lock);
void free_owner(hl_owner *owner);

/* The result of a call, by its name. */
#define expect_outcome(call, code)                                                                 \
    expect_code(&(struct hl_test_place){__FILE__, __LINE__, #call}, (call), (code))
#define expect_ok(call) expect_outcome(call, HL_OK)
void expect_code(const struct hl_test_place *place, int actual, int expected);

/* What stands in Redis, at once or soon: one field of this client's, with this count; or nothing.
 */
void expect_held_by(hl_client *client, hl_lock *lock, int count);
void expect_free(hl_lock *lock);
const char *field_of(hl_lock *lock); /* "(nil)" when it is free; borrowed like redis_str() */
int64_t pttl_of(hl_lock *lock);

hl_stats stats_of(hl_client *client);
void expect_waiters(hl_client *client, int n); /* soon */

/* A counter in the statistics reaches n soon: wait_stat(client, renewals, 2). */
#define wait_stat(client, field, n)                                                                \
    check_msg(wait_stat_at((client), offsetof(hl_stats, field), (uint64_t)(n)),                    \
              "%s: not %d; holds lost: %d", #field, (int)(n), (int)stats_of(client).losses)
bool wait_stat_at(hl_client *client, size_t offset, uint64_t n);

/* A lease that tests see renewed a few times, and that a slow machine renews in time. */
#define SHORT_MS slow_ms(300)

#endif
