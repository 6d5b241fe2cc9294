/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Releasing permits: one, or several by one request, all or none. */
#include "base/check.h"
#include "base/error.h"
#include "lease/hold/lease_change.h"
#include "lease/hold/loss.h"
#include "lease/hold/release_call.h"
#include "lease/state/command.h"
#include "sync/permits/permits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of the permits that are released together. */
struct permit_item {
    struct hli_permit_id id;
    struct hli_lease_change change; /* of a permit that this client holds */
    char fate;                      /* from the script's reply; 0 without an answer */
};

struct permit_batch {
    struct hli_call call;
    size_t count;
    struct permit_item *items; /* owned, until `settle`; ordered by id, each once */
};

/* The arguments of the public call. */
struct batch_args {
    const hl_permit *permits;
    size_t count;
};

static struct permit_batch *batch_of(struct hli_call *call)
{
    return HLI_OF(call, struct permit_batch, call);
}

static int batch_fail(struct hli_call *call, int code, const struct hli_permit_id *id,
                      const char *why)
{
    hl_permit shown;
    char text[224];

    hli_permit_show(id, &shown);
    snprintf(text, sizeof(text), "%spermit %s: %s", batch_of(call)->count > 1 ? "none: " : "",
             shown.id, why);
    return hli_call_fail(call, code, text);
}

/* No permit was released. An earlier copy released all or none: so if one permit is still out, or
 * has expired, that copy released none. If the server refused the call until all had ended, they
 * may have lasted until the call, and its words say why it came too late. */
static int batch_read_fates(struct permit_batch *batch, const char *fates)
{
    const struct permit_item *gone = NULL, *expired = NULL;
    bool may_be_done = batch->call.may_have_run;
    bool are_gone = true;

    for (size_t i = 0; i < batch->count; i++) {
        struct permit_item *item = &batch->items[i];
        item->fate = fates[i];
        may_be_done = may_be_done && item->fate == '0';
        are_gone = are_gone && (item->fate == '0' || item->fate == 'x');
        if (item->fate == 'x' && !expired)
            expired = item;
        else if (item->fate == '0' && !gone)
            gone = item;
    }
    if (are_gone && batch->call.problem < 0 && !batch->call.may_have_run)
        return hli_call_fail(&batch->call, HL_EINDOUBT, batch->call.problem_text);
    if (expired)
        return batch_fail(&batch->call, HL_ELOST, &expired->id, "it had expired");
    if (!gone)
        return HL_ESERVER;
    return may_be_done ? HL_EINDOUBT
                       : batch_fail(&batch->call, HL_ENOENT, &gone->id, "it is not out");
}

static int batch_read(struct hli_call *call, const struct hli_reply *reply)
{
    struct permit_batch *batch = batch_of(call);
    const struct hli_reply *fates = hli_reply_text_at(reply, 1);
    int64_t status = -2;

    hli_reply_integer_at(reply, 0, &status);
    if (status == 1)
        return HL_OK;
    return status == 0 && fates && fates->length == batch->count
               ? batch_read_fates(batch, fates->text)
               : HL_ESERVER;
}

/* The code of one permit: if none was released, permits that are still out stay held as before. The
 * same holds if the call did not begin. */
static int batch_code_of(const struct permit_item *item, int code)
{
    bool is_none = code == HL_ENOENT || code == HL_ELOST;
    bool is_gone = item->fate == '0' || item->fate == 'x';

    return is_none && !is_gone ? HL_EINVAL : code;
}

static void batch_settle(struct hli_call *call, int code)
{
    struct permit_batch *batch = batch_of(call);

    for (size_t i = 0; batch->items && i < batch->count; i++) {
        struct permit_item *item = &batch->items[i];
        if (item->change.tenure)
            hli_lease_change_end(&item->change, batch_code_of(item, code), 0);
        if (code == HL_OK)
            hli_count(&call->client->counters.releases);
    }
    free(batch->items);
}

static int batch_compare(const void *one, const void *other)
{
    return memcmp(((const struct permit_item *)one)->id.bytes,
                  ((const struct permit_item *)other)->id.bytes, HLI_PERMIT_SIZE);
}

/* Reads and sorts the ids. Errors: HL_EINVAL. */
static int batch_fill(struct permit_batch *batch, const hl_permit *permits)
{
    struct permit_item *items = batch->items;

    for (size_t i = 0; i < batch->count; i++)
        if (hli_permit_read_for(&batch->call, &permits[i], &items[i].id) < 0)
            return HL_EINVAL;
    qsort(items, batch->count, sizeof(*items), batch_compare);
    for (size_t i = 1; i < batch->count; i++)
        if (batch_compare(&items[i - 1], &items[i]) == 0)
            return batch_fail(&batch->call, HL_EINVAL, &items[i].id, "it is there twice");
    return 0;
}

static void batch_write(const struct permit_batch *batch, struct hli_args *args)
{
    hli_permit_begin(args, HLI_SCRIPT_PERMIT_RELEASE, batch->call.name);
    char *to = hli_args_room(args, batch->count * HLI_PERMIT_SIZE);
    for (size_t i = 0; to && i < batch->count; i++)
        memcpy(to + i * HLI_PERMIT_SIZE, batch->items[i].id.bytes, HLI_PERMIT_SIZE);
    hli_command_publish(args, batch->call.name);
    hli_args_text(args, "1");
}

/* If this client holds the permit, the hold ends here, unless the call fails. Errors: HL_EINVAL,
 * HL_ELOST, HL_ENOENT. */
static int batch_begin_item(struct permit_batch *batch, struct permit_item *item)
{
    struct hli_tenure *tenure = hli_permit_find(batch->call.name, &item->id);
    char why[HLI_LOSS_SIZE] = "another call for it is under way";
    struct hli_turn turn;

    if (!tenure)
        return 0;
    hli_turn_begin(&turn, tenure->name);
    item->change = (struct hli_lease_change){.how = HLI_LEASE_RETURN};
    int rc = hli_lease_change_begin(&turn, tenure, &item->change);
    if (rc == HL_ELOST)
        hli_loss_write(tenure, turn.now, "", why);
    hli_turn_end(&turn);
    hli_tenure_unref(tenure);
    if (rc == HL_ENOTOWNER)
        return batch_fail(&batch->call, HL_ENOENT, &item->id, "it is being released");
    return rc == 0 ? 0 : batch_fail(&batch->call, rc, &item->id, why);
}

static int batch_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    const struct batch_args *asked = what;
    struct permit_batch *batch = batch_of(call);
    int rc;

    if (!asked->permits || asked->count < 1 || asked->count > HL_PERMITS_MAX_PER_CALL)
        return hli_call_fail(call, HL_EINVAL, "permits is NULL, or their count is out of range");
    batch->count = asked->count;
    batch->items = calloc(asked->count, sizeof(struct permit_item));
    if (!batch->items)
        return hli_call_fail(call, HL_ENOMEM, hl_err_text(HL_ENOMEM));
    rc = batch_fill(batch, asked->permits);
    for (size_t i = 0; rc == 0 && i < batch->count; i++)
        rc = batch_begin_item(batch, &batch->items[i]);
    if (rc == 0)
        batch_write(batch, args);
    return rc;
}

/* Permits that the server may have lost are reclaimed first. */
static bool batch_is_early(struct hli_call *call)
{
    const struct permit_batch *batch = batch_of(call);

    for (size_t i = 0; i < batch->count; i++)
        if (hli_lease_change_is_early(&batch->items[i].change))
            return true;
    return false;
}

static const struct hli_call_kind batch_kind = {.verb = "release",
                                                .size = sizeof(struct permit_batch),
                                                .changes_data = true,
                                                .is_repeatable = true,
                                                .counts_as = HL_CALL_RELEASE,
                                                .prepare = batch_prepare,
                                                .is_early = batch_is_early,
                                                .read = batch_read,
                                                .settle = batch_settle};

static int permit_release_many(hl_permits *semaphore, const hl_permit *permits, size_t count,
                               const struct hli_completion *completion)
{
    const struct batch_args asked = {permits, count};

    return hli_handle_run(HLI_HANDLE(semaphore), &batch_kind, &asked, completion);
}

static int permit_release(hl_permits *semaphore, const hl_permit *permit,
                          const struct hli_completion *completion)
{
    const struct hli_release_mode mode = {.is_posted = false};
    struct hli_tenure *tenure = NULL;
    struct hli_permit_id id;
    int rc = hli_handle_enter(HLI_HANDLE(semaphore), completion);

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->handle.name->client;
    if (hli_permit_read(permit, &id))
        tenure = hli_permit_find(semaphore->handle.name, &id);
    if (tenure) /* a permit's tenure has one owner, from its hold's begin to its own end */
        rc = hli_release_run(tenure->name, tenure->hold.owner, &mode, completion);
    else
        rc = permit_release_many(semaphore, permit, 1, completion);
    hli_tenure_unref(tenure);
    hli_client_leave(client);
    return rc;
}

int hl_permits_release(hl_permits *semaphore, const hl_permit *permit, hl_error *err)
{
    return permit_release(semaphore, permit, HLI_BLOCKING(err));
}

int hl_permits_release_async(hl_permits *semaphore, const hl_permit *permit, hl_done_cb done,
                             void *arg)
{
    return permit_release(semaphore, permit, HLI_ASYNC_CALL(done, done, arg));
}

int hl_permits_release_many(hl_permits *semaphore, const hl_permit *permits, size_t count,
                            hl_error *err)
{
    return permit_release_many(semaphore, permits, count, HLI_BLOCKING(err));
}

int hl_permits_release_many_async(hl_permits *semaphore, const hl_permit *permits, size_t count,
                                  hl_done_cb done, void *arg)
{
    return permit_release_many(semaphore, permits, count, HLI_ASYNC_CALL(done, done, arg));
}
