/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inspect and force-release of a Redlock: its masters are asked one after the other, and what most
 * of them say is the answer. */
#include "base/error.h"
#include "base/versioned.h"
#include "sync/kinds/redlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hli_lock_type redlock_voter_type = {.kind = &hli_kind_voter};

/* A call's way through the masters. */
struct redlock_tour {
    struct hli_name *name; /* the Redlock's; counted if the call is async */
    struct hl_lock at;     /* a handle of the next master's name; borrowed */
    int64_t timeout_ms;    /* for each master */
    bool inspects;         /* else it releases */
    size_t next, free, failed;
    hl_lock_info info[HLI_QUORUM_LIMIT]; /* of the masters that name a holder */
    size_t held;
    hl_error err; /* of the first that failed */
    struct hli_completion completion;
};

/* Notes the next master's answer. True: there is another one to ask. */
static bool tour_answered(struct redlock_tour *tour, int code, const hl_lock_info *info,
                          const hl_error *err)
{
    bool is_held = code == HL_OK && (!tour->inspects || info->locked);

    if (is_held && tour->inspects) {
        tour->info[tour->held] = *info;
        hli_quorum_cut_index(tour->info[tour->held].owner);
    }
    tour->held += is_held;
    tour->free += (code == HL_OK && !is_held) || code == HL_ENOENT;
    if (code < 0 && code != HL_ENOENT && tour->failed++ == 0)
        tour->err = *err;
    return ++tour->next < tour->name->quorum->count;
}

/* How many masters name this holder, with a lease of at least so long. */
static size_t tour_same(const struct redlock_tour *tour, const hl_lock_info *info, int64_t lease_ms)
{
    size_t same = 0;

    for (size_t i = 0; i < tour->held; i++)
        same += strcmp(tour->info[i].owner, info->owner) == 0 &&
                (tour->info[i].lease_left_ms < 0 || tour->info[i].lease_left_ms >= lease_ms);
    return same;
}

/* The holder that most masters name; and for how long a majority of them will, or all that do. */
static hl_lock_info tour_holder(const struct redlock_tour *tour, size_t *ret_same)
{
    const char *id = tour->name->client->id;
    hl_lock_info best = HL_LOCK_INFO_INIT;
    size_t most = 0;

    for (size_t i = 0; i < tour->held; i++) {
        const hl_lock_info *info = &tour->info[i];
        size_t all = tour_same(tour, info, INT64_MIN);
        size_t enough = all < tour->name->quorum->majority ? all : tour->name->quorum->majority;
        bool is_least = tour_same(tour, info, info->lease_left_ms) >= enough;
        if (all > most || (all == most && strcmp(info->owner, best.owner) == 0 && is_least &&
                           info->lease_left_ms > best.lease_left_ms)) {
            most = all;
            best = *info;
        }
    }
    best.mine = strncmp(best.owner, id, HLI_UUID_LENGTH) == 0 && best.owner[HLI_UUID_LENGTH] == ':';
    *ret_same = most;
    return best;
}

/* Held by one who may have a majority, as far as the masters answer. */
static int tour_inspected(struct redlock_tour *tour, hl_lock_info *ret_info)
{
    size_t same = 0;

    *ret_info = tour_holder(tour, &same);
    if (same == 0 || same + tour->failed < tour->name->quorum->majority)
        *ret_info = (hl_lock_info)HL_LOCK_INFO_INIT;
    return HL_OK;
}

static int tour_code(struct redlock_tour *tour, hl_lock_info *ret_info)
{
    const struct hli_quorum *quorum = tour->name->quorum;
    const char *verb = tour->inspects ? "inspect" : "force release";
    char text[sizeof(tour->err.text)];

    if (tour->held + tour->free < quorum->majority) {
        snprintf(text, sizeof(text), "only %zu of %zu masters answered (%.150s)",
                 tour->held + tour->free, quorum->count, tour->err.text);
        return hli_name_fail(&tour->err, tour->err.code, tour->name, verb, text);
    }
    if (tour->inspects)
        return tour_inspected(tour, ret_info);
    return tour->held > 0
               ? HL_OK
               : hli_name_fail(&tour->err, HL_ENOENT, tour->name, verb, "nobody holds it");
}

static void tour_turn_to_next(struct redlock_tour *tour)
{
    tour->at.type = &redlock_voter_type;
    tour->at.handle.name = tour->name->quorum->voters[tour->next];
}

static void tour_end(struct redlock_tour *tour)
{
    const struct hli_completion *completion = &tour->completion;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    int code = tour_code(tour, &info);
    const hl_error *err = code < 0 ? &tour->err : NULL;

    if (tour->inspects)
        completion->inspected(code, err ? NULL : &info, err, completion->arg);
    else
        completion->done(code, err, completion->arg);
    hli_name_unref(tour->name);
    free(tour);
}

static int tour_post(struct redlock_tour *tour);

/* The next master is asked in the completion of the one before; one that cannot be asked has
 * failed. */
static void tour_heard(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    struct redlock_tour *tour = arg;

    while (tour_answered(tour, code, info, err)) {
        code = tour_post(tour);
        if (code == 0)
            return;
        err = hl_err_last();
    }
    tour_end(tour);
}

static void tour_forced(int code, const hl_error *err, void *arg)
{
    tour_heard(code, NULL, err, arg);
}

static int tour_ask(struct redlock_tour *tour, const struct hli_completion *completion)
{
    tour_turn_to_next(tour);
    return tour->inspects ? hli_lock_inspect_within(&tour->at, tour->timeout_ms, completion)
                          : hli_lock_force_within(&tour->at, tour->timeout_ms, completion);
}

static int tour_post(struct redlock_tour *tour)
{
    return tour_ask(tour, tour->inspects ? HLI_ASYNC_CALL(inspected, tour_heard, tour)
                                         : HLI_ASYNC_CALL(done, tour_forced, tour));
}

static int tour_begin(const struct redlock_tour *begun)
{
    struct redlock_tour *tour = malloc(sizeof(*tour));

    if (!tour)
        return hli_no_memory(NULL);
    *tour = *begun;
    hli_name_ref(tour->name);
    int rc = tour_post(tour);
    if (rc == 0)
        return 0;
    hli_name_unref(tour->name);
    free(tour);
    return rc;
}

static int tour_block(struct redlock_tour *tour)
{
    hl_lock_info info;
    hl_error err;
    int code;

    do {
        info = (hl_lock_info)HL_LOCK_INFO_INIT;
        err = (hl_error)HL_ERROR_INIT;
        code = tour_ask(
            tour, &(struct hli_completion){.err = &err, .ret_info = tour->inspects ? &info : NULL});
    } while (tour_answered(tour, code, &info, &err));
    code = tour_code(tour, &info);
    if (code < 0 && tour->completion.err)
        *tour->completion.err = tour->err;
    if (code == HL_OK && tour->completion.ret_info)
        hli_versioned_write(tour->completion.ret_info, sizeof(info), &info);
    return code;
}

static int tour_run(const hl_lock *lock, bool inspects, const struct hli_completion *completion)
{
    int rc = hli_handle_enter(&lock->handle, completion);

    if (rc < 0)
        return rc;
    hl_client *client = lock->handle.name->client;
    struct redlock_tour *tour = calloc(1, sizeof(*tour));
    if (!tour) {
        hli_client_leave(client);
        return hli_no_memory(completion->err);
    }
    tour->name = lock->handle.name;
    tour->timeout_ms = client->settings.request_timeout_ms;
    tour->inspects = inspects;
    tour->completion = *completion;
    rc = completion->is_async ? tour_begin(tour) : tour_block(tour);
    free(tour);
    hli_client_leave(client);
    return rc;
}

int hli_redlock_inspect(const hl_lock *lock, const struct hli_completion *completion)
{
    return tour_run(lock, true, completion);
}

int hli_redlock_force_release(const hl_lock *lock, const struct hli_completion *completion)
{
    return tour_run(lock, false, completion);
}
