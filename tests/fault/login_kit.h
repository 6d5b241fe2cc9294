/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the tests of logins: a server with the users app (password "one-secret") and next
 * ("two-secret"), and a desk, which is a credentials callback that says what the test wants.
 */
#ifndef HL_TEST_LOGIN_KIT_H
#define HL_TEST_LOGIN_KIT_H

#include <pthread.h>

#include "support/events.h"
#include "support/kit.h"
#include "support/proxy.h"
#include "support/recorder.h"

#define ONE "one-secret-of-app-8c1f"
#define TWO "two-secret-of-next-77d0"

#define LOGIN_USERS                                                                                \
    "user app on >" ONE " ~* &* +@all\n"                                                           \
    "user next on >" TWO " ~* &* +@all"

struct desk {
    pthread_mutex_t mutex; /* guards the rest but the counters */
    pthread_cond_t cond;
    char username[64], password[64], reason[64]; /* a reason: it fails */
    int64_t valid_ms;
    bool is_shut; /* the callback blocks */
    char address[64];
    atomic_int asked, asked_for_sentinels;
};

#define DESK_INIT                                                                                  \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER                       \
    }

static inline void desk_fill(char text[64], const char *from)
{
    snprintf(text, 64, "%s", from ? from : "");
}

/* From now on it gives this login. */
static inline void desk_gives(struct desk *desk, const char *username, const char *password,
                              int64_t valid_ms)
{
    pthread_mutex_lock(&desk->mutex);
    desk_fill(desk->username, username);
    desk_fill(desk->password, password);
    desk_fill(desk->reason, NULL);
    desk->valid_ms = valid_ms;
    pthread_mutex_unlock(&desk->mutex);
}

static inline void desk_fails(struct desk *desk, const char *reason)
{
    pthread_mutex_lock(&desk->mutex);
    desk_fill(desk->reason, reason);
    pthread_mutex_unlock(&desk->mutex);
}

static inline void desk_set_shut(struct desk *desk, bool is_shut)
{
    pthread_mutex_lock(&desk->mutex);
    desk->is_shut = is_shut;
    pthread_cond_broadcast(&desk->cond);
    pthread_mutex_unlock(&desk->mutex);
}

/* For .credentials_cb; .credentials_arg is the desk. */
static inline void desk_answer(const hl_credentials_request *request, hl_credentials *credentials,
                               void *arg)
{
    struct desk *desk = arg;

    pthread_mutex_lock(&desk->mutex);
    desk_fill(desk->address, request->address);
    atomic_fetch_add(&desk->asked, 1);
    if (request->purpose == HL_CREDENTIALS_SENTINEL)
        atomic_fetch_add(&desk->asked_for_sentinels, 1);
    while (desk->is_shut)
        pthread_cond_wait(&desk->cond, &desk->mutex);
    if (desk->reason[0])
        hl_credentials_fail(credentials, desk->reason);
    else
        hl_credentials_set(credentials, desk->username[0] ? desk->username : NULL,
                           desk->password[0] ? desk->password : NULL, desk->valid_ms);
    pthread_mutex_unlock(&desk->mutex);
}

static inline bool desk_was_asked(struct desk *desk, int times, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (atomic_load(&desk->asked) < times && !deadline_is_over(deadline))
        deadline_nap();
    return atomic_load(&desk->asked) >= times;
}

/* No message of the server is waited for by polling, and reconnects come soon. */
#define LOGIN_WITHIN(ms, desk_, ...)                                                               \
    CLIENT(.credentials_cb = desk_answer, .credentials_arg = (desk_), .connect_timeout_ms = (ms),  \
           .request_timeout_ms = patience_ms(5000), .poll_ms = 60000, .backoff_min_ms = 5,         \
           .backoff_max_ms = 50, __VA_ARGS__)
#define LOGIN(...) LOGIN_WITHIN(slow_ms(5000), __VA_ARGS__)

/* The server's connections of clients of this library as this user. */
static inline int login_count(const char *user)
{
    char part[80];
    int count = 0;

    snprintf(part, sizeof part, " user=%s ", user);
    redisReply *reply = redis_command(server, "CLIENT LIST");
    check(reply && reply->type == REDIS_REPLY_STRING);
    char *rest = NULL, *line = strtok_r(reply->str, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest))
        count += strstr(line, " name=hirelock ") && strstr(line, part);
    freeReplyObject(reply);
    return count;
}

static inline bool login_wait(const char *user, int count, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (login_count(user) != count && !deadline_is_over(deadline))
        deadline_nap();
    return login_count(user) == count;
}

static inline void login_up(void)
{
    server_up_with(&(struct redis_options){.tcp = true, .config = LOGIN_USERS});
}

#define LoginLaw(suite, name) Test(suite, name, .init = login_up, .fini = server_down)

static inline void login_try_out(hl_client *client)
{
    hl_lock *lock = new_lock(client, "tried");

    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
}

/* The open fails with this code, and its text has this part. */
static inline void expect_no_open(const char *url, const hl_client_options *options, int code,
                                  const char *part)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(url, options, &client, &err);

    check_msg(rc == code, "%s: %s", hl_err_name(rc), err.text);
    check_has(err.text, part);
    check(!client);
}

#endif
