/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A call's tour of a multi-lock's members, one after the other: inspect and force-release. */
#include "base/check.h"
#include "base/error.h"
#include "base/versioned.h"
#include "lease/several/release_all.h"
#include "sync/kinds/multi.h"

#include <stdlib.h>

/* Ranks what stops a caller: held by another client, then free, then held by this client. */
static int multi_info_rank(const hl_lock_info *info)
{
    return info->locked && !info->mine ? 2 : !info->locked ? 1 : 0;
}

/* Keeps the answer of the highest rank. True when no other answer can rank higher. */
static bool multi_info_keep(hl_lock_info *best, const hl_lock_info *info, bool is_first)
{
    if (is_first || multi_info_rank(info) > multi_info_rank(best))
        *best = *info;
    return multi_info_rank(best) == 2;
}

/* Combines the members' codes so far with another one: an error wins, then a release. */
static int multi_force_code(int code, int other)
{
    if (code == HL_ENOENT || other == HL_ENOENT)
        return code == HL_ENOENT ? other : code;
    return hli_release_all_worse(code, other);
}

/* A call's way through the members. */
struct multi_tour {
    struct hli_multi *multi; /* counted if the call is async */
    bool inspects;           /* else it releases */
    size_t next;
    int code;
    hl_error err;
    hl_lock_info best;
    struct hli_completion completion;
    hl_client *client; /* counted if the call is async: it runs the completion */
    struct hli_callback callback;
};

/* Notes the next member's answer. True: there is another one to ask. */
static bool multi_tour_answered(struct multi_tour *tour, int code, const hl_lock_info *info,
                                const hl_error *err)
{
    bool is_first = tour->next++ == 0, ends = false;
    int before = tour->code;

    tour->code = tour->inspects ? code : multi_force_code(before, code);
    if (tour->code < 0 && (tour->code != before || is_first))
        tour->err = *err;
    if (tour->inspects)
        ends = code < 0 || multi_info_keep(&tour->best, info, is_first);
    return !ends && tour->next < tour->multi->count;
}

static void multi_tour_free(struct multi_tour *tour)
{
    hli_multi_unref(tour->multi);
    hli_client_unref(tour->client);
    free(tour);
}

static void multi_tour_tell(struct hli_callback *callback)
{
    struct multi_tour *tour = HLI_PART_OF(callback, struct multi_tour, callback);
    const hl_error *err = tour->code < 0 ? &tour->err : NULL;
    const struct hli_completion *completion = &tour->completion;

    if (tour->inspects)
        completion->inspected(tour->code, err ? NULL : &tour->best, err, completion->arg);
    else
        completion->done(tour->code, err, completion->arg);
    multi_tour_free(tour);
}

/* In a callback of the last member's client. If the call's own client is closed, that one serves.
 */
static void multi_tour_end(struct multi_tour *tour)
{
    hl_client *client = tour->client;

    HLI_PART_IS(&tour->callback, struct multi_tour, callback);
    tour->callback.run = multi_tour_tell;
    if (!tour->multi->span || hli_client_enter(client) < 0) {
        multi_tour_tell(&tour->callback);
        return;
    }
    hli_callbacks_post(&client->callbacks, &tour->callback);
    hli_client_leave(client);
}

static int multi_tour_post(struct multi_tour *tour);

/* The next member is asked in the completion of the one before. */
static void multi_tour_inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    struct multi_tour *tour = arg;

    if (multi_tour_answered(tour, code, info, err)) {
        code = multi_tour_post(tour);
        if (code == 0)
            return;
        tour->code = hli_fail(&tour->err, code, "%s", hl_err_text(code));
    }
    multi_tour_end(tour);
}

static void multi_tour_forced(int code, const hl_error *err, void *arg)
{
    multi_tour_inspected(code, NULL, err, arg);
}

static int multi_tour_post(struct multi_tour *tour)
{
    hl_lock *member = &tour->multi->members[tour->next];

    return tour->inspects ? hl_lock_inspect_async(member, multi_tour_inspected, tour)
                          : hl_lock_force_release_async(member, multi_tour_forced, tour);
}

static int multi_tour_begin(const struct multi_tour *begun)
{
    struct multi_tour *tour = malloc(sizeof(*tour));

    if (!tour)
        return hli_no_memory(NULL);
    *tour = *begun;
    hli_ref_take(&tour->multi->ref);
    hli_client_ref(tour->client);
    int rc = hli_callbacks_want(&tour->client->callbacks);
    rc = rc < 0 ? hli_no_memory(NULL) : multi_tour_post(tour);
    if (rc < 0)
        multi_tour_free(tour);
    return rc;
}

static int multi_tour_block(struct multi_tour *tour)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock_info info;
    int code;

    do {
        hl_lock *member = &tour->multi->members[tour->next];
        info = (hl_lock_info)HL_LOCK_INFO_INIT;
        code = tour->inspects ? hl_lock_inspect(member, &info, &err)
                              : hl_lock_force_release(member, &err);
    } while (multi_tour_answered(tour, code, &info, &err));
    if (tour->code < 0 && tour->completion.err)
        *tour->completion.err = tour->err;
    return tour->code;
}

static int multi_tour_run(const hl_lock *lock, struct multi_tour *tour)
{
    int rc = hli_handle_enter(&lock->handle, &tour->completion);

    if (rc < 0)
        return rc;
    hl_client *client = tour->client = lock->handle.name->client;
    rc = tour->completion.is_async ? multi_tour_begin(tour) : multi_tour_block(tour);
    hli_client_leave(client);
    return rc;
}

int hli_multi_inspect(const hl_lock *lock, struct hli_multi *multi,
                      const struct hli_completion *completion)
{
    struct multi_tour tour = {.multi = multi, .inspects = true, .completion = *completion};
    int rc = multi_tour_run(lock, &tour);

    if (rc == 0 && completion->ret_info)
        hli_versioned_write(completion->ret_info, sizeof(tour.best), &tour.best);
    return rc;
}

int hli_multi_force_release(const hl_lock *lock, struct hli_multi *multi,
                            const struct hli_completion *completion)
{
    struct multi_tour tour = {.multi = multi, .code = HL_ENOENT, .completion = *completion};

    return multi_tour_run(lock, &tour);
}
