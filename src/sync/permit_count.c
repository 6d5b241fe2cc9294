/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* How many permits there are: asking, and setting. */
#include "base/error.h"
#include "lease/command.h"
#include "sync/permit_semaphore.h"
#include "sync/query.h"

#include <stdlib.h>

/* {1, available, acquired} */
static bool inspect_read(const struct hli_reply *reply, int64_t *ret_available,
                         int64_t *ret_acquired)
{
    return hli_reply_integer_at(reply, 1, ret_available) &&
           hli_reply_integer_at(reply, 2, ret_acquired);
}

static int count_read_available(struct hli_query *query, const struct hli_reply *reply)
{
    int64_t acquired;

    return inspect_read(reply, &query->count, &acquired) ? HL_OK : HL_ESERVER;
}

static int count_read_acquired(struct hli_query *query, const struct hli_reply *reply)
{
    int64_t available;

    return inspect_read(reply, &available, &query->count) ? HL_OK : HL_ESERVER;
}

static int count_read_total(struct hli_query *query, const struct hli_reply *reply)
{
    int64_t available, acquired;

    if (!inspect_read(reply, &available, &acquired))
        return HL_ESERVER;
    query->count = available + acquired;
    return HL_OK;
}

static const struct hli_query_kind count_available = {
    .verb = "available", .is_repeatable = true, .read = count_read_available};
static const struct hli_query_kind count_acquired = {
    .verb = "acquired", .is_repeatable = true, .read = count_read_acquired};
static const struct hli_query_kind count_total = {
    .verb = "total", .is_repeatable = true, .read = count_read_total};

static int set_read(struct hli_query *query, const struct hli_reply *reply)
{
    int64_t status = 0;

    (void)query;
    if (!hli_reply_integer_at(reply, 0, &status))
        return HL_ESERVER;
    return status == 1 ? HL_OK : HL_EBUSY;
}

static int delete_read(struct hli_query *query, const struct hli_reply *reply)
{
    int code = set_read(query, reply);

    return code == HL_EBUSY ? HL_ENOTOWNER : code;
}

/* A copy of the first would delete what others have set meanwhile, and one of the second would find
 * what the one before it set. */
static const struct hli_query_kind set_delete = {
    .verb = "delete", .is_deed = true, .read = delete_read};
static const struct hli_query_kind set_if_new = {
    .verb = "try to set permits", .is_deed = true, .read = set_read};
static const struct hli_query_kind set_always = {
    .verb = "set permits", .is_deed = true, .is_repeatable = true, .read = set_read};
static const struct hli_query_kind set_more = {
    .verb = "add permits", .is_deed = true, .read = set_read};

static struct hli_query *count_query(const hl_permit_semaphore *semaphore,
                                     const struct hli_query_kind *kind)
{
    return hli_permit_query(hli_query_new(kind, semaphore->name, sizeof(struct hli_query)),
                            HLI_SCRIPT_PERMIT_INSPECT, NULL, 0);
}

static int count_block(hl_permit_semaphore *semaphore, const struct hli_query_kind *kind,
                       int64_t *ret_count, hl_error *err)
{
    int rc = ret_count ? hli_permits_enter(semaphore, err)
                       : hli_fail(err, HL_EINVAL, "ret_count is NULL");

    if (rc < 0)
        return rc;
    rc = hli_query_block(count_query(semaphore, kind), ret_count, err);
    hli_permits_leave(semaphore);
    return rc;
}

static int count_post(hl_permit_semaphore *semaphore, const struct hli_query_kind *kind,
                      hl_count_cb done, void *arg)
{
    int rc = done ? hli_permits_enter(semaphore, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->name->client;
    rc = hli_query_post(count_query(semaphore, kind),
                        &(struct hli_told){.counted = done, .arg = arg});
    hli_client_leave(client);
    return rc;
}

static struct hli_query *set_query(const hl_permit_semaphore *semaphore,
                                   const struct hli_query_kind *kind, int64_t count)
{
    char number[HLI_NUMBER_SIZE];
    const struct hli_bytes args[] = {hli_command_number(number, count),
                                     hli_bytes_of(kind == &set_if_new ? "1" : "0")};
    struct hli_query *query = hli_query_new(kind, semaphore->name, sizeof(struct hli_query));

    if (kind == &set_delete)
        return hli_permit_query(query, HLI_SCRIPT_PERMIT_DELETE, NULL, 0);
    if (kind == &set_more)
        return hli_permit_query(query, HLI_SCRIPT_PERMIT_ADD, args, 1);
    return hli_permit_query(query, HLI_SCRIPT_PERMIT_SET, args, 2);
}

static int set_enter(const hl_permit_semaphore *semaphore, const struct hli_query_kind *kind,
                     int64_t count, hl_error *err)
{
    int64_t least = kind == &set_more ? -HL_PERMITS_MAX : 0;

    if (semaphore && (count < least || count > HL_PERMITS_MAX))
        return hli_fail(err, HL_EINVAL, "the number of permits is out of range");
    return hli_permits_enter(semaphore, err);
}

static int set_block(hl_permit_semaphore *semaphore, const struct hli_query_kind *kind,
                     int64_t count, hl_error *err)
{
    int rc = set_enter(semaphore, kind, count, err);

    if (rc < 0)
        return rc;
    rc = hli_query_block(set_query(semaphore, kind, count), NULL, err);
    hli_permits_leave(semaphore);
    return rc;
}

static int set_post(hl_permit_semaphore *semaphore, const struct hli_query_kind *kind,
                    int64_t count, const struct hli_told *told)
{
    int rc = told->done ? set_enter(semaphore, kind, count, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->name->client;
    rc = hli_query_post(set_query(semaphore, kind, count), told);
    hli_client_leave(client);
    return rc;
}

int hl_permit_semaphore_available(hl_permit_semaphore *semaphore, int64_t *ret_count, hl_error *err)
{
    return count_block(semaphore, &count_available, ret_count, err);
}

int hl_permit_semaphore_available_async(hl_permit_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return count_post(semaphore, &count_available, done, arg);
}

int hl_permit_semaphore_acquired(hl_permit_semaphore *semaphore, int64_t *ret_count, hl_error *err)
{
    return count_block(semaphore, &count_acquired, ret_count, err);
}

int hl_permit_semaphore_acquired_async(hl_permit_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return count_post(semaphore, &count_acquired, done, arg);
}

int hl_permit_semaphore_total(hl_permit_semaphore *semaphore, int64_t *ret_count, hl_error *err)
{
    return count_block(semaphore, &count_total, ret_count, err);
}

int hl_permit_semaphore_total_async(hl_permit_semaphore *semaphore, hl_count_cb done, void *arg)
{
    return count_post(semaphore, &count_total, done, arg);
}

int hl_permit_semaphore_try_set_permits(hl_permit_semaphore *semaphore, int64_t count,
                                        hl_error *err)
{
    return set_block(semaphore, &set_if_new, count, err);
}

int hl_permit_semaphore_try_set_permits_async(hl_permit_semaphore *semaphore, int64_t count,
                                              hl_done_cb done, void *arg)
{
    return set_post(semaphore, &set_if_new, count, &(struct hli_told){.done = done, .arg = arg});
}

int hl_permit_semaphore_set_permits(hl_permit_semaphore *semaphore, int64_t count, hl_error *err)
{
    return set_block(semaphore, &set_always, count, err);
}

int hl_permit_semaphore_set_permits_async(hl_permit_semaphore *semaphore, int64_t count,
                                          hl_done_cb done, void *arg)
{
    return set_post(semaphore, &set_always, count, &(struct hli_told){.done = done, .arg = arg});
}

int hl_permit_semaphore_add_permits(hl_permit_semaphore *semaphore, int64_t more, hl_error *err)
{
    return set_block(semaphore, &set_more, more, err);
}

int hl_permit_semaphore_add_permits_async(hl_permit_semaphore *semaphore, int64_t more,
                                          hl_done_cb done, void *arg)
{
    return set_post(semaphore, &set_more, more, &(struct hli_told){.done = done, .arg = arg});
}

int hl_permit_semaphore_delete(hl_permit_semaphore *semaphore, hl_error *err)
{
    return set_block(semaphore, &set_delete, 0, err);
}

int hl_permit_semaphore_delete_async(hl_permit_semaphore *semaphore, hl_done_cb done, void *arg)
{
    return set_post(semaphore, &set_delete, 0, &(struct hli_told){.done = done, .arg = arg});
}
