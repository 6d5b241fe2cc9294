/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Helpers of tests of locks. A test that begins with server_up() and ends with server_down(), as a
 * Law does, has one server, `server`, and need not close the things that it opened by these
 * functions.
 */
#ifndef HL_TEST_KIT_H
#define HL_TEST_KIT_H

#include <hirelock/hirelock.h>

#include "redis_probe.h"
#include "test.h"

extern struct redis_server *server;

/* Where open_client() opens clients; NULL: at `server`. */
extern const char *clients_url;

/* For .init and .fini. server_down() stops the actors, frees the handles, closes the clients, and
 * stops the proxies. */
void server_up(void);
void server_up_single(void);
void server_up_tcp(void);
void server_up_with(const struct redis_options *options);
void server_down(void);

/* A test with that server; a TcpLaw's server listens on TCP too, mostly for a proxy. A Law is also
 * run at sentinels and at a cluster (shared_servers.h); a SingleLaw, which is about one server's
 * death, pause, connections or messages, and a TcpLaw are not. */
#define Law(suite, ...) Test(suite, __VA_ARGS__, .init = server_up, .fini = server_down)
#define SingleLaw(suite, ...)                                                                      \
    Test(suite, __VA_ARGS__, .init = server_up_single, .fini = server_down)
#define TcpLaw(suite, ...) Test(suite, __VA_ARGS__, .init = server_up_tcp, .fini = server_down)

/* Options with these fields set and the defaults for the rest. */
#define CLIENT(...) (&(hl_client_options){.size = sizeof(hl_client_options), __VA_ARGS__})
#define ACQUIRE(...) (&(hl_acquire_options){.size = sizeof(hl_acquire_options), __VA_ARGS__})
#define WAIT(...) (&(hl_wait_options){.size = sizeof(hl_wait_options), __VA_ARGS__})

/* hl_lock_acquire_with(), and the present holder if it was refused, or the hold's token. Both
 * return the call's code. */
static inline int acquire_past(hl_lock *lock, const hl_acquire_options *options,
                               hl_lock_info *ret_busy)
{
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_acquire_with(lock, options, &err);

    if (code < 0)
        *ret_busy = err.busy;
    return code;
}

static inline int acquire_token(hl_lock *lock, const hl_acquire_options *options,
                                uint64_t *ret_token)
{
    int code = hl_lock_acquire_with(lock, options, NULL);

    if (code == 0)
        *ret_token = hl_lock_token(lock, options->owner);
    return code;
}

/* Each ends the test when it fails. options may be NULL. */
hl_client *open_client(const hl_client_options *options); /* of `server`, or of clients_url */
hl_client *open_client_at(const char *url, const hl_client_options *options);
hl_lock *new_lock(hl_client *client, const char *name); /* with this run's options: handle.h */
hl_lock *new_lock_with(hl_client *client, const char *name, const hl_lock_options *options);
static inline hl_lock *new_kind(hl_client *client, const char *name, hl_lock_kind kind)
{
    return new_lock_with(client, name,
                         &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = kind});
}
hl_lock *keep_lock(hl_lock *lock); /* server_down() frees a lock that the test made itself */
hl_owner *new_owner(hl_client *client);
hl_cancel *new_cancel(void);
struct proxy *new_proxy(void); /* before `server`; server_down() lets everything pass first */

/* server_down() frees this handle, too. */
void *free_at_end(void *item, void (*free_item)(void *item));

/* And stops this one, behind the clients: servers. */
void *stop_at_end(void *item, void (*stop)(void *item));

/* Each ends one of them before the test ends. */
void close_client(hl_client *client);
void free_lock(hl_lock *lock);
void free_owner(hl_owner *owner);
void free_proxy(struct proxy *proxy);

/* Checks the result of a call; a failed check shows the code's name, and the error's text too if
 * ERR is the call's last argument: expect_ok(hl_lock_acquire(lock, ERR)). */
#define expect_outcome(call, code)                                                                 \
    kit_expect_outcome(&(struct hl_test_place){__FILE__, __LINE__, #call}, (call), (code))
#define expect_ok(call) expect_outcome(call, HL_OK)
#define ERR kit_err()
void kit_expect_outcome(const struct hl_test_place *place, int actual, int expected);
hl_error *kit_err(void); /* this thread's, empty */

/* The lock's key in Redis, at once or soon: one field of this client with this count; or no key. */
void expect_held_by(hl_client *client, hl_lock *lock, int count);
void expect_free(hl_lock *lock);
const char *field_of(hl_lock *lock); /* "(nil)" for a free lock; borrowed like redis_str() */
int64_t pttl_of(hl_lock *lock);

hl_stats stats_of(hl_client *client);
void expect_waiters(hl_client *client, int n); /* soon */

/* A counter in the statistics reaches n soon: wait_stat(client, renewals, 2). */
#define wait_stat(client, field, n)                                                                \
    check_msg(wait_stat_at((client), offsetof(hl_stats, field), (uint64_t)(n)),                    \
              "%s: not %d; holds lost: %d", #field, (int)(n), (int)stats_of(client).losses)
bool wait_stat_at(hl_client *client, size_t offset, uint64_t n);

/* A lease that tests see renewed a few times, and that a slow machine renews in time. */
#define SHORT_MS slow_ms(1500)

#endif
