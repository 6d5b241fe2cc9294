/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The Redlock's constructor. */
#include <hirelock/redlock.h>

#include "base/error.h"
#include "base/versioned.h"
#include "sync/kinds/redlock.h"

#include <stdlib.h>
#include <string.h>

enum {
    REDLOCK_VOTE_MS = 200,
    REDLOCK_RETRY_MIN_MS = 50,
    REDLOCK_RETRY_MAX_MS = 200,
    REDLOCK_LIMIT_MS = 60000,
};

static const int64_t redlock_max_ms = INT64_C(100000000000);

static int64_t redlock_longest_lease(const hl_lock *lock)
{
    return ((const struct hli_redlock *)lock)->restart_ms;
}

static int redlock_prepare(const hl_lock *lock, struct hl_owner *owner,
                           struct hli_acquire_mode *mode, hl_error *err)
{
    const struct hli_redlock *redlock = (const struct hli_redlock *)lock;

    (void)owner, (void)err;
    mode->vote_ms = redlock->vote_ms;
    mode->restart_ms = redlock->restart_ms;
    mode->listens = true;
    return 0;
}

static const struct hli_lock_type redlock_classic_type = {
    .kind = &hli_kind_classic,
    .stands_alone = true,
    .prepare = redlock_prepare,
    .longest_lease = redlock_longest_lease,
};

static const struct hli_lock_type redlock_type = {
    .kind = &hli_kind_redlock,
    .stands_alone = true,
    .prepare = redlock_prepare,
    .longest_lease = redlock_longest_lease,
    .inspect = hli_redlock_inspect,
    .force_release = hli_redlock_force_release,
};

static int redlock_time(const char *what, int64_t *value, int64_t standard, int64_t most,
                        hl_error *err)
{
    if (*value == 0)
        *value = standard;
    return *value >= 1 && *value <= most
               ? 0
               : hli_fail(err, HL_EINVAL, "%s is not from 1 to %lld", what, (long long)most);
}

static int redlock_check_options(const hl_client *client, hl_redlock_options *options,
                                 hl_error *err)
{
    const unsigned known =
        HL_REDLOCK_NESTS | HL_REDLOCK_ASYNC_RELEASE | HL_REDLOCK_NO_RESTART_DELAY;
    int64_t watchdog_ms = client->settings.watchdog_timeout_ms;
    int rc = options->flags & ~known
                 ? hli_fail(err, HL_EINVAL, "flags hold what this version does not know")
                 : 0;

    if (rc == 0)
        rc = redlock_time("vote_timeout_ms", &options->vote_timeout_ms, REDLOCK_VOTE_MS,
                          REDLOCK_LIMIT_MS, err);
    if (rc == 0)
        rc = redlock_time("retry_min_ms", &options->retry_min_ms, REDLOCK_RETRY_MIN_MS,
                          REDLOCK_LIMIT_MS, err);
    if (rc == 0)
        rc = redlock_time("retry_max_ms", &options->retry_max_ms,
                          options->retry_min_ms > REDLOCK_RETRY_MAX_MS ? options->retry_min_ms
                                                                       : REDLOCK_RETRY_MAX_MS,
                          REDLOCK_LIMIT_MS, err);
    if (rc == 0 && options->retry_max_ms < options->retry_min_ms)
        rc = hli_fail(err, HL_EINVAL, "retry_max_ms is less than retry_min_ms");
    if (rc == 0)
        rc = redlock_time("max_lease_ms", &options->max_lease_ms, watchdog_ms, redlock_max_ms, err);
    if (rc == 0 && options->max_lease_ms < watchdog_ms)
        rc = hli_fail(err, HL_EINVAL,
                      "max_lease_ms is less than the client's watchdog_timeout_ms, its own lease");
    return rc;
}

/* Two clients may reach one server by different addresses: an acquire finds that out. */
static bool redlock_is_twice(const hl_client *client, const hl_client *other)
{
    char where[HLI_WHERE_SIZE], others[HLI_WHERE_SIZE];

    hli_link_where(hli_client_link(client, 0, 0), where);
    hli_link_where(hli_client_link(other, 0, 0), others);
    return client == other || strcmp(where, others) == 0;
}

static int redlock_check_clients(hl_client *const *clients, size_t count, hl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int rc = hli_client_check(clients[i]);
        if (rc < 0)
            return hli_fail(err, rc, "client %zu of %zu: %s", i + 1, count,
                            clients[i] ? hl_err_text(rc) : "it is NULL");
        if (count > 1 && !hli_topology_is_fixed(clients[i]->topology))
            return hli_fail(
                err, HL_EINVAL,
                "client %zu of %zu: a master of a Redlock is one server; what Sentinels "
                "or a cluster name may change, and forget a vote",
                i + 1, count);
        for (size_t j = 0; j < i; j++)
            if (redlock_is_twice(clients[i], clients[j]))
                return hli_fail(
                    err, HL_EINVAL,
                    "clients %zu and %zu are of the same server: each needs a master of "
                    "its own",
                    j + 1, i + 1);
    }
    return 0;
}

static int redlock_check(hl_client *const *clients, size_t count, hl_lock *const *ret_lock,
                         hl_error *err)
{
    if (!clients || !ret_lock)
        return hli_fail(err, HL_EINVAL, "the clients or ret_lock is NULL");
    if (count < 1 || count > HLI_QUORUM_LIMIT)
        return hli_fail(err, HL_EINVAL, "%zu clients: a Redlock has 1 to %d", count,
                        HLI_QUORUM_LIMIT);
    if (count % 2 == 0)
        return hli_fail(
            err, HL_EINVAL,
            "%zu clients: give an odd number, for %zu survive no more failures than %zu", count,
            count, count - 1);
    return redlock_check_clients(clients, count, err);
}

static void redlock_set(struct hli_redlock *redlock, const hl_redlock_options *options)
{
    bool is_delayed = !(options->flags & HL_REDLOCK_NO_RESTART_DELAY);

    unsigned nests = options->flags & HL_REDLOCK_NESTS ? 0 : HL_LOCK_NON_REENTRANT;
    unsigned posted = options->flags & HL_REDLOCK_ASYNC_RELEASE ? HL_LOCK_ASYNC_RELEASE : 0;

    redlock->lock.flags = (nests | posted) & HLI_LOCK_FLAGS;
    redlock->lock.backoff_min_ms = (uint16_t)options->retry_min_ms;
    redlock->lock.backoff_max_ms = (uint16_t)options->retry_max_ms;
    redlock->vote_ms = options->vote_timeout_ms;
    redlock->restart_ms = is_delayed ? options->max_lease_ms : 0;
}

static int redlock_init(struct hli_redlock *redlock, hl_client *const *clients, size_t count,
                        const hl_redlock_options *options, hl_error *err)
{
    const struct hli_bytes name = {options->name, options->name_length};
    struct hl_lock *lock = &redlock->lock;

    redlock_set(redlock, options);
    lock->type = count > 1 ? &redlock_type : &redlock_classic_type;
    int rc = hli_handle_init(&lock->handle, clients[0], lock->type->kind, name, err);
    if (rc < 0 || count == 1)
        return rc;
    rc = hli_quorum_set(lock->handle.name, clients, count, &hli_kind_voter, err);
    if (rc < 0)
        hli_handle_deinit(&lock->handle);
    return rc;
}

int hl_redlock_new_with(hl_client *const *clients, size_t count, const hl_redlock_options *passed,
                        hl_lock **ret_lock, hl_error *err)
{
    hl_redlock_options options = HL_REDLOCK_OPTIONS_INIT;
    int rc = redlock_check(clients, count, ret_lock, err);

    if (rc == 0)
        rc = hli_versioned_read(&options, sizeof(options), passed, "the options", err);
    if (rc == 0)
        rc = redlock_check_options(clients[0], &options, err);
    if (rc < 0)
        return rc;
    struct hli_redlock *redlock = calloc(1, sizeof(*redlock));
    if (!redlock)
        return hli_no_memory(err);
    rc = redlock_init(redlock, clients, count, &options, err);
    if (rc < 0)
        free(redlock);
    else
        *ret_lock = &redlock->lock;
    return rc;
}

int hl_redlock_new(hl_client *const *clients, size_t count, const char *name, hl_lock **ret_lock,
                   hl_error *err)
{
    hl_redlock_options options = HL_REDLOCK_OPTIONS_INIT;

    options.name = name;
    return hl_redlock_new_with(clients, count, &options, ret_lock, err);
}
