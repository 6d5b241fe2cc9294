/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Inspect and force-release of a multi-lock: its members' own, one after the other. */
#include "base/error.h"
#include "lease/scatter.h"
#include "sync/multi_lock.h"

#include <stdlib.h>
#include <string.h>

/* Held by another, then free, then held by this client: what a caller would meet first. */
static int multi_info_rank(const hl_lock_info *info)
{
    return info->locked && !info->mine ? 2 : !info->locked ? 1 : 0;
}

/* True when no other can matter more. */
static bool multi_info_take(hl_lock_info *best, const hl_lock_info *info, bool is_first)
{
    if (is_first || multi_info_rank(info) > multi_info_rank(best))
        *best = *info;
    return multi_info_rank(best) == 2;
}

int hli_multi_inspect(hl_lock *lock, hl_lock_info *info, hl_error *err)
{
    struct hli_multi *multi = hli_multi_of(lock);
    hl_lock_info best = HL_LOCK_INFO_INIT;
    size_t size = info->size;

    for (size_t i = 0; i < multi->count; i++) {
        hl_lock_info each = HL_LOCK_INFO_INIT;
        int rc = hl_lock_inspect(&multi->members[i], &each, err);
        if (rc < 0)
            return rc;
        if (multi_info_take(&best, &each, i == 0))
            break;
    }
    best.size = size;
    memcpy(info, &best, size < sizeof(best) ? size : sizeof(best));
    return 0;
}

/* Of the members' answers so far and another: something was released; or why it may not be. */
static int multi_force_code(int code, int other)
{
    bool is_fault = code < 0 && code != HL_ENOTOWNER,
         others_is = other < 0 && other != HL_ENOTOWNER;

    if (is_fault || others_is)
        return is_fault && others_is ? hli_scatter_worse(code, other) : is_fault ? code : other;
    return code == HL_OK ? code : other;
}

int hli_multi_force_release(hl_lock *lock, hl_error *err)
{
    struct hli_multi *multi = hli_multi_of(lock);
    hl_error worst = HL_ERROR_INIT;
    int code = HL_ENOTOWNER;

    for (size_t i = 0; i < multi->count; i++) {
        hl_error each = HL_ERROR_INIT;
        int rc = hl_lock_force_release(&multi->members[i], &each);
        int next = multi_force_code(code, rc);
        if (next < 0 && (next != code || i == 0))
            worst = each;
        code = next;
    }
    if (code < 0 && err)
        *err = worst;
    return code;
}

/* An async call's way through the members; the next one is begun in the completion of the one
 * before. */
struct multi_tour {
    struct hli_multi *multi; /* counted */
    size_t next;
    int code;
    hl_error err;
    hl_lock_info best;
    hl_inspect_cb inspected; /* one of the two */
    hl_done_cb done;
    void *arg;
};

static struct multi_tour *multi_tour_new(const hl_lock *lock, void *arg)
{
    struct multi_tour *tour = calloc(1, sizeof(*tour));

    if (!tour)
        return NULL;
    tour->multi = hli_multi_of(lock);
    hli_multi_ref(tour->multi);
    tour->code = HL_ENOTOWNER;
    tour->best = (hl_lock_info)HL_LOCK_INFO_INIT;
    tour->arg = arg;
    return tour;
}

static void multi_tour_free(struct multi_tour *tour)
{
    hli_multi_unref(tour->multi);
    free(tour);
}

static int multi_tour_inspect(struct multi_tour *tour);
static int multi_tour_force(struct multi_tour *tour);

static void multi_tour_end(struct multi_tour *tour)
{
    const hl_error *err = tour->code < 0 ? &tour->err : NULL;

    if (tour->inspected)
        tour->inspected(tour->code, err ? NULL : &tour->best, err, tour->arg);
    else
        tour->done(tour->code, err, tour->arg);
    multi_tour_free(tour);
}

static bool multi_tour_is_over(const struct multi_tour *tour)
{
    return tour->next == tour->multi->count;
}

static void multi_tour_fail(struct multi_tour *tour, int code)
{
    tour->code = hli_fail(&tour->err, code, "%s", hl_err_text(code));
}

static void multi_tour_inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    struct multi_tour *tour = arg;

    tour->code = code;
    if (code < 0)
        tour->err = *err;
    bool ends = code < 0 || multi_info_take(&tour->best, info, tour->next == 0);
    tour->next++;
    if (!ends && !multi_tour_is_over(tour)) {
        code = multi_tour_inspect(tour);
        if (code == 0)
            return;
        multi_tour_fail(tour, code);
    }
    multi_tour_end(tour);
}

static void multi_tour_forced(int code, const hl_error *err, void *arg)
{
    struct multi_tour *tour = arg;
    int before = tour->code;

    tour->code = multi_force_code(before, code);
    if (tour->code < 0 && (tour->code != before || tour->next == 0))
        tour->err = *err;
    tour->next++;
    if (!multi_tour_is_over(tour)) {
        code = multi_tour_force(tour);
        if (code == 0)
            return;
        multi_tour_fail(tour, code);
    }
    multi_tour_end(tour);
}

static int multi_tour_inspect(struct multi_tour *tour)
{
    return hl_lock_inspect_async(&tour->multi->members[tour->next], multi_tour_inspected, tour);
}

static int multi_tour_force(struct multi_tour *tour)
{
    return hl_lock_force_release_async(&tour->multi->members[tour->next], multi_tour_forced, tour);
}

int hli_multi_inspect_async(hl_lock *lock, hl_inspect_cb done, void *arg)
{
    struct multi_tour *tour = multi_tour_new(lock, arg);

    if (!tour)
        return HL_ENOMEM;
    tour->inspected = done;
    int rc = multi_tour_inspect(tour);
    if (rc < 0)
        multi_tour_free(tour);
    return rc;
}

int hli_multi_force_release_async(hl_lock *lock, hl_done_cb done, void *arg)
{
    struct multi_tour *tour = multi_tour_new(lock, arg);

    if (!tour)
        return HL_ENOMEM;
    tour->done = done;
    int rc = multi_tour_force(tour);
    if (rc < 0)
        multi_tour_free(tour);
    return rc;
}
