/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The semaphore: what is one request and one answer, blocking or async. */
#include "sync/semaphore.h"

#include "base/error.h"

static const int64_t semaphore_max_ttl_ms = INT64_C(100000000000); /* as of all times */

static const struct hli_noted_verb semaphore_release = {.query = HLI_NOTED_DEED("release"),
                                                        .script = HLI_SCRIPT_SEMAPHORE_ADD,
                                                        .tells = true,
                                                        .is_release = true,
                                                        .no = HL_ENOTOWNER,
                                                        .no_text = "there is no semaphore"};
static const struct hli_noted_verb semaphore_add = {
    .query = HLI_NOTED_DEED("add permits"), .script = HLI_SCRIPT_SEMAPHORE_ADD, .tells = true};
static const struct hli_noted_verb semaphore_try_set = {.query = HLI_NOTED_DEED("set permits"),
                                                        .script = HLI_SCRIPT_SEMAPHORE_TRY_SET,
                                                        .tells = true,
                                                        .no = HL_EBUSY,
                                                        .no_text = "there is a semaphore already"};
static const struct hli_noted_verb semaphore_drain = {.query = HLI_NOTED_DEED("drain"),
                                                      .script = HLI_SCRIPT_SEMAPHORE_DRAIN};
static const struct hli_noted_verb semaphore_available = {
    .query = HLI_NOTED_QUESTION("available permits"), .script = HLI_SCRIPT_SEMAPHORE_AVAILABLE};

/* A verb and its words: permits, and what belongs to it. Errors: HL_EINVAL. */
struct semaphore_said {
    int64_t number[2];
    struct hli_noted_call call;
};

static void semaphore_say(struct semaphore_said *said, const struct hli_noted_verb *verb,
                          int64_t permits, int64_t more)
{
    said->number[0] = permits;
    said->number[1] = more;
    said->call = (struct hli_noted_call){verb, said->number, 2};
}

static int semaphore_say_release(struct semaphore_said *said, int64_t permits, bool must_exist,
                                 hl_error *err)
{
    semaphore_say(said, &semaphore_release, permits, must_exist);
    return hli_semaphore_check_permits(permits, 1, err);
}

static int semaphore_say_add(struct semaphore_said *said, int64_t permits, hl_error *err)
{
    semaphore_say(said, &semaphore_add, permits, 0);
    if (permits == 0)
        return hli_fail(err, HL_EINVAL, "permits are 0");
    return hli_semaphore_check_permits(permits, -INT32_MAX, err);
}

static int semaphore_say_try_set(struct semaphore_said *said, int64_t permits, int64_t ttl_ms,
                                 hl_error *err)
{
    semaphore_say(said, &semaphore_try_set, permits, ttl_ms);
    if (ttl_ms < 0 || ttl_ms > semaphore_max_ttl_ms)
        return hli_fail(err, HL_EINVAL, "ttl_ms is not from 0 to 10^11");
    return hli_semaphore_check_permits(permits, 0, err);
}

static int semaphore_block(const hl_semaphore *semaphore, const struct semaphore_said *said,
                           hl_error *err)
{
    return hli_noted_block(hli_semaphore_handle(semaphore), &said->call, NULL, err);
}

int hl_semaphore_release(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    struct semaphore_said said;
    int rc = semaphore_say_release(&said, permits, false, err);

    return rc < 0 ? rc : semaphore_block(semaphore, &said, err);
}

int hl_semaphore_release_if_exists(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    struct semaphore_said said;
    int rc = semaphore_say_release(&said, permits, true, err);

    return rc < 0 ? rc : semaphore_block(semaphore, &said, err);
}

int hl_semaphore_try_set_permits(hl_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                 hl_error *err)
{
    struct semaphore_said said;
    int rc = semaphore_say_try_set(&said, permits, ttl_ms, err);

    return rc < 0 ? rc : semaphore_block(semaphore, &said, err);
}

int hl_semaphore_add_permits(hl_semaphore *semaphore, int64_t permits, hl_error *err)
{
    struct semaphore_said said;
    int rc = semaphore_say_add(&said, permits, err);

    return rc < 0 ? rc : semaphore_block(semaphore, &said, err);
}

int hl_semaphore_drain(hl_semaphore *semaphore, int64_t *ret_permits, hl_error *err)
{
    if (!ret_permits)
        return hli_fail(err, HL_EINVAL, "ret_permits is NULL");
    return hli_noted_block(hli_semaphore_handle(semaphore),
                           &(struct hli_noted_call){.verb = &semaphore_drain}, ret_permits, err);
}

int hl_semaphore_available(hl_semaphore *semaphore, int64_t *ret_permits, hl_error *err)
{
    if (!ret_permits)
        return hli_fail(err, HL_EINVAL, "ret_permits is NULL");
    return hli_noted_block(hli_semaphore_handle(semaphore),
                           &(struct hli_noted_call){.verb = &semaphore_available}, ret_permits,
                           err);
}

static int semaphore_post(const hl_semaphore *semaphore, const struct semaphore_said *said,
                          hl_done_cb done, void *arg)
{
    return hli_noted_post(hli_semaphore_handle(semaphore), &said->call,
                          &(struct hli_told){.done = done, .arg = arg});
}

int hl_semaphore_release_async(hl_semaphore *semaphore, int64_t permits, hl_done_cb done, void *arg)
{
    struct semaphore_said said;
    int rc = semaphore_say_release(&said, permits, false, NULL);

    return rc < 0 ? rc : semaphore_post(semaphore, &said, done, arg);
}

int hl_semaphore_release_if_exists_async(hl_semaphore *semaphore, int64_t permits, hl_done_cb done,
                                         void *arg)
{
    struct semaphore_said said;
    int rc = semaphore_say_release(&said, permits, true, NULL);

    return rc < 0 ? rc : semaphore_post(semaphore, &said, done, arg);
}

int hl_semaphore_try_set_permits_async(hl_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                       hl_done_cb done, void *arg)
{
    struct semaphore_said said;
    int rc = semaphore_say_try_set(&said, permits, ttl_ms, NULL);

    return rc < 0 ? rc : semaphore_post(semaphore, &said, done, arg);
}

int hl_semaphore_add_permits_async(hl_semaphore *semaphore, int64_t permits, hl_done_cb done,
                                   void *arg)
{
    struct semaphore_said said;
    int rc = semaphore_say_add(&said, permits, NULL);

    return rc < 0 ? rc : semaphore_post(semaphore, &said, done, arg);
}

int hl_semaphore_drain_async(hl_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return hli_noted_post(hli_semaphore_handle(semaphore),
                          &(struct hli_noted_call){.verb = &semaphore_drain},
                          &(struct hli_told){.counted = done, .arg = arg});
}

int hl_semaphore_available_async(hl_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return hli_noted_post(hli_semaphore_handle(semaphore),
                          &(struct hli_noted_call){.verb = &semaphore_available},
                          &(struct hli_told){.counted = done, .arg = arg});
}
