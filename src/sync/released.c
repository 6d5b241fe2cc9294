/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Calls of release: blocking and async differ only in how the end is told. */
#include "sync/released.h"

#include "base/check.h"

#include <stdlib.h>

int hli_released_block(struct hli_name *name, struct hl_owner *owner,
                       const struct hli_release_way *way, hl_error *err)
{
    struct hli_released released;

    hli_released_init(&released, name, err);
    if (!way->is_posted)
        hli_wait_will_block(&released.wait);
    hli_release_start(name, owner, way, &released.wait);
    int rc = hli_wait_block(&released.wait);
    hli_released_count(&released);
    return rc;
}

struct posted_release {
    struct hli_ref ref; /* the completion's, and the timer's */
    struct hli_callback callback;
    struct hli_release_told told;
    hl_error err;
    struct hli_released released;
    struct hli_name *name; /* counted */
};

static void posted_release_unref(struct posted_release *posted)
{
    if (!hli_ref_drop(&posted->ref))
        return;
    hli_name_unref(posted->name);
    free(posted);
}

static struct posted_release *posted_release_of(struct hli_wait *wait)
{
    return HLI_OF(HLI_OF(wait, struct hli_released, wait), struct posted_release, released);
}

static void posted_release_finished(struct hli_wait *wait)
{
    hli_callbacks_post(&wait->client->callbacks, &posted_release_of(wait)->callback);
}

static void posted_release_looked(struct hli_wait *wait)
{
    posted_release_unref(posted_release_of(wait)); /* the timer's */
}

static void posted_release_run(struct hli_callback *callback)
{
    struct posted_release *posted = HLI_OF(callback, struct posted_release, callback);
    int code = posted->released.wait.code;

    hli_released_count(&posted->released);
    if (hli_wait_end(&posted->released.wait))
        posted_release_unref(posted); /* the timer's */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    posted->told.done(code, code < 0 ? &posted->err : NULL, posted->told.arg);
    posted_release_unref(posted); /* the completion's */
}

static struct posted_release *posted_release_new(struct hli_name *name,
                                                 const struct hli_release_told *told)
{
    struct posted_release *posted = calloc(1, sizeof(*posted));

    if (!posted)
        return NULL;
    hli_ref_init(&posted->ref); /* the completion's */
    posted->callback.run = posted_release_run;
    posted->told = *told;
    hli_name_ref(name);
    posted->name = name;
    hli_released_init(&posted->released, name, &posted->err);
    posted->released.wait.finished = posted_release_finished;
    posted->released.wait.looked = posted_release_looked;
    return posted;
}

int hli_released_post(struct hli_name *name, struct hl_owner *owner,
                      const struct hli_release_way *way, const struct hli_release_told *told)
{
    if (!told->done)
        return HL_EINVAL;
    if (hli_callbacks_want(&name->client->callbacks) < 0)
        return HL_ENOMEM;
    struct posted_release *posted = posted_release_new(name, told);
    if (!posted)
        return HL_ENOMEM;
    /* The timer's, and this call's: the release may be over at once. */
    hli_ref_take(&posted->ref);
    hli_ref_take(&posted->ref);
    hli_release_start(name, owner, way, &posted->released.wait);
    if (!hli_wait_look_after(&posted->released.wait))
        posted_release_unref(posted);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not count references */
    posted_release_unref(posted);
    return 0;
}
