/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the permit semaphore asks and tells the server by single requests. */
#include "base/check.h"
#include "base/error.h"
#include "lease/command.h"
#include "lease/retime.h"
#include "sync/permit_semaphore.h"
#include "sync/query.h"

enum { PERMIT_MIN_LEASE_MS = 10 };

static const int64_t permit_max_lease_ms = INT64_C(100000000000);

struct hli_query *hli_permit_query(struct hli_query *query, hli_script_id script,
                                   const struct hli_bytes *args, size_t arg_count)
{
    char channel[HLI_CHANNEL_SIZE];
    struct hli_bytes said[4];

    if (!query)
        return NULL;
    const struct hli_bytes key = {query->name->bytes, query->name->length};
    HLI_CHECK(arg_count <= 2);
    for (size_t i = 0; i < arg_count; i++)
        said[i] = args[i];
    said[arg_count] =
        (struct hli_bytes){channel, hli_name_write(query->name, hli_kind_permit.channel, channel)};
    said[arg_count + 1] = hli_bytes_of("PUBLISH");
    const struct hli_script_words words = {&key, 1, said, arg_count + 2};
    if (hli_op_script(&query->call.op, script, &words) == 0)
        return query;
    hli_query_unref(query);
    return NULL;
}

static int64_t query_status(const struct hli_reply *reply)
{
    int64_t status = 0;

    return hli_reply_integer_at(reply, 0, &status) ? status : -2;
}

/* {1}, {0}: it is not out, {-1}: it had expired. */
static int permit_read_fate(struct hli_query *query, const struct hli_reply *reply)
{
    (void)query;
    switch (query_status(reply)) {
    case 1:
        return HL_OK;
    case 0:
        return HL_ENOTOWNER;
    case -1:
        return HL_ELOST;
    default:
        return HL_ESERVER;
    }
}

/* Not out may be the deed of a copy whose answer never came. */
static int permit_read_release(struct hli_query *query, const struct hli_reply *reply)
{
    const struct hli_reply *fates = hli_reply_text_at(reply, 1);
    int64_t status = query_status(reply);

    if (!fates || (status != 0 && status != 1))
        return HL_ESERVER;
    if (status == 1)
        return HL_OK;
    if (fates->text[0] == 'x')
        return HL_ELOST;
    return query->call.may_have_run ? HL_OK : HL_ENOTOWNER;
}

static void release_settle(struct hli_query *query, int code)
{
    struct hli_counters *counters = &query->name->client->counters;

    if (code == HL_OK)
        hli_count(&counters->releases);
    else if (code == HL_EUNKNOWN)
        hli_count(&counters->unknowns);
}

static const struct hli_query_kind permit_release_kind = {.verb = "release",
                                                          .is_deed = true,
                                                          .is_repeatable = true,
                                                          .read = permit_read_release,
                                                          .settle = release_settle};

struct hli_query *hli_permit_release_query(const hl_permit_semaphore *semaphore,
                                           const struct hli_permit_id *id)
{
    const struct hli_bytes arg = {id->bytes, sizeof(id->bytes)};

    return hli_permit_query(
        hli_query_new(&permit_release_kind, semaphore->name, sizeof(struct hli_query)),
        HLI_SCRIPT_PERMIT_RELEASE, &arg, 1);
}

static int permit_read_left(struct hli_query *query, const struct hli_reply *reply)
{
    int code = permit_read_fate(query, reply);

    return code == HL_OK && !hli_reply_integer_at(reply, 1, &query->count) ? HL_ESERVER : code;
}

static const struct hli_query_kind permit_left_kind = {
    .verb = "lease left", .is_repeatable = true, .read = permit_read_left};

static struct hli_query *permit_left_query(const hl_permit_semaphore *semaphore,
                                           const struct hli_permit_id *id)
{
    const struct hli_bytes arg = {id->bytes, sizeof(id->bytes)};

    return hli_permit_query(
        hli_query_new(&permit_left_kind, semaphore->name, sizeof(struct hli_query)),
        HLI_SCRIPT_PERMIT_LEASE_LEFT, &arg, 1);
}

int hl_permit_semaphore_lease_left(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                   int64_t *ret_ms, hl_error *err)
{
    struct hli_permit_id id;
    int rc = ret_ms ? hli_permits_enter_with(semaphore, permit, &id, err)
                    : hli_fail(err, HL_EINVAL, "ret_ms is NULL");

    if (rc < 0)
        return rc;
    rc = hli_query_block(permit_left_query(semaphore, &id), ret_ms, err);
    hli_permits_leave(semaphore);
    return rc;
}

int hl_permit_semaphore_lease_left_async(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                         hl_count_cb done, void *arg)
{
    struct hli_permit_id id;
    int rc = done ? hli_permits_enter_with(semaphore, permit, &id, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->name->client;
    rc = hli_query_post(permit_left_query(semaphore, &id),
                        &(struct hli_told){.counted = done, .arg = arg});
    hli_client_leave(client);
    return rc;
}

/* A new lease; of one of ours, its hold is prepared for it. */
struct permit_update {
    struct hli_query query;
    struct hli_permit_id id;
    struct hli_retiming retiming; /* tenure NULL: it is not ours */
};

static void update_settle(struct hli_query *query, int code)
{
    struct permit_update *update = HLI_OF(query, struct permit_update, query);

    if (update->retiming.tenure)
        hli_retime_end(&update->retiming, code, code == HL_OK ? query->call.op.sent_at : 0);
}

/* A renewal that is under way counts from when it runs: behind this one it would undo a shorter
 * lease. Another is not begun meanwhile. */
static bool update_is_early(struct hli_call *call)
{
    const struct permit_update *update =
        HLI_OF(HLI_OF(call, struct hli_query, call), struct permit_update, query);
    const hl_permit_semaphore semaphore = {.name = update->query.name};
    struct hli_name *name = hli_permit_find_name(&semaphore, &update->id);

    if (!name)
        return false;
    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_permit_tenure(name, &update->id);
    bool is_early = tenure && tenure->is_renewing;
    pthread_mutex_unlock(&name->mutex);
    hli_name_unref(name);
    return is_early;
}

static const struct hli_query_kind permit_update_kind = {.verb = "update lease",
                                                         .is_deed = true,
                                                         .is_repeatable = true,
                                                         .read = permit_read_fate,
                                                         .settle = update_settle};

static struct hli_query *update_new(const hl_permit_semaphore *semaphore,
                                    const struct hli_permit_id *id, int64_t wire_ms)
{
    char lease[HLI_NUMBER_SIZE];
    const struct hli_bytes args[] = {{id->bytes, sizeof(id->bytes)},
                                     hli_command_number(lease, wire_ms)};
    struct hli_query *query =
        hli_query_new(&permit_update_kind, semaphore->name, sizeof(struct permit_update));

    if (!query)
        return NULL;
    HLI_OF(query, struct permit_update, query)->id = *id;
    query->call.is_early = update_is_early;
    return hli_permit_query(query, HLI_SCRIPT_PERMIT_UPDATE_LEASE, args, 2);
}

/* A permit that this client holds is told first. Errors: HL_EINVAL, HL_ELOST. */
static int update_begin(struct permit_update *update, const hl_permit_semaphore *semaphore,
                        const struct hli_permit_id *id, int64_t lease_ms)
{
    struct hli_name *name = hli_permit_find_name(semaphore, id);
    int rc = HL_ENOTOWNER;

    if (name) {
        struct hli_turn turn;
        hli_turn_begin(&turn, name);
        struct hli_tenure *tenure = hli_permit_tenure(name, id);
        if (tenure)
            rc = hli_retime_begin(&turn, tenure, lease_ms, &update->retiming);
        hli_turn_end(&turn);
        hli_name_unref(name);
    }
    if (rc == HL_ENOTOWNER && lease_ms != 0)
        return 0;
    return rc == HL_ENOTOWNER ? HL_EINVAL : rc;
}

static const char *update_refusal(int code)
{
    return code == HL_EINVAL
               ? "lease_ms is 0, and the permit is not this client's; or another call "
                 "for this permit is under way"
               : hl_err_text(code);
}

/* Formatted, and begun. Errors: HL_EINVAL, HL_ELOST, HL_ENOMEM. */
static int update_make(const hl_permit_semaphore *semaphore, const struct hli_permit_id *id,
                       int64_t lease_ms, struct hli_query **ret_query, hl_error *err)
{
    int64_t watchdog_ms = semaphore->name->client->settings.watchdog_timeout_ms;

    if (lease_ms != 0 && (lease_ms < PERMIT_MIN_LEASE_MS || lease_ms > permit_max_lease_ms))
        return hli_fail(err, HL_EINVAL, "lease_ms is neither 0 nor from %d to 10^11",
                        PERMIT_MIN_LEASE_MS);
    struct hli_query *query = update_new(semaphore, id, lease_ms > 0 ? lease_ms : watchdog_ms);
    if (!query)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = update_begin(HLI_OF(query, struct permit_update, query), semaphore, id, lease_ms);
    if (rc < 0) {
        hli_query_unref(query);
        return hli_fail(err, rc, "update lease: %s", update_refusal(rc));
    }
    *ret_query = query;
    return 0;
}

int hl_permit_semaphore_update_lease(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                     int64_t lease_ms, hl_error *err)
{
    struct hli_query *query = NULL;
    struct hli_permit_id id;
    int rc = hli_permits_enter_with(semaphore, permit, &id, err);

    if (rc < 0)
        return rc;
    rc = update_make(semaphore, &id, lease_ms, &query, err);
    if (rc == 0)
        rc = hli_query_block(query, NULL, err);
    hli_permits_leave(semaphore);
    return rc;
}

static int update_post(struct hli_query *query, hl_done_cb done, void *arg)
{
    struct permit_update *update = HLI_OF(query, struct permit_update, query);
    struct hli_retiming retiming = update->retiming;
    int rc = hli_query_post(query, &(struct hli_told){.done = done, .arg = arg});

    if (rc < 0 && retiming.tenure)
        hli_retime_end(&retiming, rc, 0);
    return rc;
}

int hl_permit_semaphore_update_lease_async(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                           int64_t lease_ms, hl_done_cb done, void *arg)
{
    struct hli_query *query = NULL;
    struct hli_permit_id id;
    int rc = done ? hli_permits_enter_with(semaphore, permit, &id, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->name->client;
    rc = update_make(semaphore, &id, lease_ms, &query, NULL);
    if (rc == 0)
        rc = update_post(query, done, arg);
    hli_client_leave(client);
    return rc;
}
