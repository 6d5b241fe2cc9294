/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Acquiring permits: one or several by one request, blocking and async. */
#include "base/error.h"
#include "base/random.h"
#include "lease/acquire/acquire.h"
#include "lease/calls/replicas.h"
#include "lease/hold/hold.h"
#include "sync/common/acquire_options.h"
#include "sync/permits/permits.h"

#include <stdlib.h>

/* One call. Everything that the holds need is allocated before the request is sent. */
struct permit_order {
    struct hli_name *name; /* counted; of the first permit */
    size_t count;
    struct hli_tenure **others; /* owned: count - 1 of them, each in a name of its own */
};

static void order_deinit(struct permit_order *order)
{
    for (size_t i = 0; order->others && i + 1 < order->count; i++)
        hli_tenure_unref(order->others[i]);
    free(order->others);
    if (order->name)
        hli_name_unref(order->name);
}

static struct hli_name *order_name(const hl_permits *semaphore, struct hli_owner_key owner_key)
{
    const struct hli_name *other = semaphore->handle.name;
    const struct hli_name_key key = {&hli_kind_permit, other->bytes, other->length, owner_key};

    return hli_name_get(other->client, &key);
}

static struct hli_tenure *order_tenure(const hl_permits *semaphore, struct hli_owner_key owner_key)
{
    struct hli_name *name = order_name(semaphore, owner_key);

    if (!name)
        return NULL;
    struct hli_tenure *tenure = hli_tenure_new(name, hli_tenure_next_number(name));
    hli_name_unref(name); /* the tenure has one of its own */
    return tenure;
}

static int order_init(struct permit_order *order, const hl_permits *semaphore, size_t count)
{
    uint64_t random = hli_random_u64();
    bool is_whole;

    order->count = count;
    order->name = order_name(semaphore, hli_permit_owner_key(random, 0, count));
    if (count > 1)
        order->others = calloc(count - 1, sizeof(struct hli_tenure *)); /* NOLINT: of pointers */
    is_whole = order->name && (count == 1 || order->others);
    for (size_t i = 1; is_whole && i < count; i++) {
        order->others[i - 1] = order_tenure(semaphore, hli_permit_owner_key(random, i, count));
        is_whole = order->others[i - 1] != NULL;
    }
    return is_whole ? 0 : HL_ENOMEM;
}

/* The result of the first permit's request, with a reference to the owner. False: it is lost. */
static bool order_view(const struct permit_order *order, struct hli_adoption *ret)
{
    hli_mutex_lock(&order->name->mutex);
    const struct hli_tenure *first = order->name->current;
    bool is_held = first && first->state == HLI_TENURE_OWN;
    if (is_held) {
        *ret = hli_hold_adoption(first);
        hli_owner_ref(ret->hold.owner);
    }
    hli_mutex_unlock(&order->name->mutex);
    return is_held;
}

/* Begins a tenure for each of the other permits. False: the client is closed, and the first tenure
 * still stands for all. */
static bool order_share(struct permit_order *order, const struct hli_adoption *adoption)
{
    for (size_t i = 0; i + 1 < order->count; i++) {
        if (!hli_hold_adopt(order->others[i], adoption))
            return false;
        order->others[i] = NULL; /* the name owns it now */
    }
    return hli_hold_stand_alone(order->name);
}

/* The first permit is held: so are the others, each by itself from now on. Errors: HL_ELOST. */
static int order_fulfil(struct permit_order *order, hl_permit *ret_permits, hl_error *err)
{
    const uint64_t random = hli_name_owner_key(order->name).half[0];
    struct hli_adoption adoption = {0};

    bool is_held = order_view(order, &adoption);
    if (is_held) {
        is_held = order_share(order, &adoption);
        hli_owner_unref(adoption.hold.owner);
    }
    if (!is_held)
        return hli_name_refuse(err, HL_ELOST, order->name, HL_CALL_ACQUIRE,
                               "it was lost before the call returned");
    for (size_t i = 0; i < order->count; i++) {
        const struct hli_permit_id id =
            hli_permit_id(hli_permit_owner_key(random, i, order->count), adoption.number);
        hli_permit_show(&id, &ret_permits[i]);
    }
    return 0;
}

static int order_read_options(const hl_permits *semaphore, size_t count,
                              const hl_acquire_options *passed, hl_acquire_options *ret,
                              const struct hli_completion *completion)
{
    int rc = hli_acquire_options_read(semaphore->handle.name->client, passed, completion, ret);

    if (rc < 0)
        return rc;
    if (count < 1 || count > HL_PERMITS_MAX_PER_CALL)
        return hli_fail(completion->err, HL_EINVAL, "count is not from 1 to %d",
                        HL_PERMITS_MAX_PER_CALL);
    if (ret->min_hold_ms != 0)
        return hli_fail(completion->err, HL_EINVAL, "min_hold_ms is not for permits");
    return 0;
}

/* The order must be empty; the caller deinitialises it in any case. */
static int order_run(const hl_permits *semaphore, struct permit_order *order, size_t count,
                     const hl_acquire_options *options, const struct hli_completion *completion)
{
    const hl_client *client = semaphore->handle.name->client;

    if (order_init(order, semaphore, count) < 0)
        return hli_no_memory(completion->err);
    const struct hli_acquire_spec spec = {
        .name = order->name,
        .mode = {.watch_ms = client->settings.watchdog_timeout_ms,
                 .need = (uint32_t)count,
                 .replicas = hli_replicas_of(client, 0),
                 .is_kept_anyway = (client->settings.flags & HL_CLIENT_KEEP_UNCONFIRMED) != 0},
        .options = options,
    };

    return hli_acquire_run(&spec, completion);
}

static int order_block(hl_permits *semaphore, size_t count, const hl_acquire_options *options,
                       hl_permit *ret_permits, hl_error *err)
{
    struct permit_order order = {.name = NULL};
    int rc = order_run(semaphore, &order, count, options, HLI_BLOCKING(err));

    if (rc == 0)
        rc = order_fulfil(&order, ret_permits, err);
    order_deinit(&order);
    return rc;
}

int hl_permits_acquire_many(hl_permits *semaphore, size_t count, const hl_acquire_options *passed,
                            hl_permit *ret_permits, hl_error *err)
{
    hl_acquire_options options;
    int rc = hli_handle_enter(HLI_HANDLE(semaphore), HLI_BLOCKING(err));

    if (rc < 0)
        return rc;
    rc = ret_permits ? order_read_options(semaphore, count, passed, &options, HLI_BLOCKING(err))
                     : hli_fail(err, HL_EINVAL, "the place for permits is NULL");
    if (rc == 0)
        rc = order_block(semaphore, count, &options, ret_permits, err);
    hli_client_leave(semaphore->handle.name->client);
    return rc;
}

int hl_permits_acquire_with(hl_permits *semaphore, const hl_acquire_options *options,
                            hl_permit *ret_permit, hl_error *err)
{
    return hl_permits_acquire_many(semaphore, 1, options, ret_permit, err);
}

int hl_permits_acquire_for(hl_permits *semaphore, int64_t wait_ms, hl_permit *ret_permit,
                           hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    return hl_permits_acquire_with(semaphore, &options, ret_permit, err);
}

int hl_permits_acquire(hl_permits *semaphore, hl_permit *ret_permit, hl_error *err)
{
    return hl_permits_acquire_for(semaphore, HL_WAIT_FOREVER, ret_permit, err);
}

int hl_permits_try_acquire(hl_permits *semaphore, hl_permit *ret_permit, hl_error *err)
{
    return hl_permits_acquire_for(semaphore, HL_NO_WAIT, ret_permit, err);
}

struct permit_posted {
    struct permit_order order;
    hl_permit_cb done;
    void *arg;
    hl_permit permits[]; /* as many as were ordered */
};

static void posted_free(struct permit_posted *posted)
{
    order_deinit(&posted->order);
    free(posted);
}

static void posted_done(int code, const hl_error *err, void *arg)
{
    struct permit_posted *posted = arg;
    hl_error lost = HL_ERROR_INIT;

    if (code == 0 && (code = order_fulfil(&posted->order, posted->permits, &lost)) < 0)
        err = &lost;
    if (code == 0)
        posted->done(0, posted->permits, posted->order.count, NULL, posted->arg);
    else
        posted->done(code, NULL, 0, err, posted->arg);
    posted_free(posted);
}

static int order_post(hl_permits *semaphore, size_t count, const hl_acquire_options *options,
                      hl_permit_cb done, void *arg)
{
    struct permit_posted *posted = calloc(1, sizeof(*posted) + count * sizeof(hl_permit));

    if (!posted)
        return hli_no_memory(NULL);
    posted->done = done;
    posted->arg = arg;
    int rc = order_run(semaphore, &posted->order, count, options,
                       HLI_ASYNC_CALL(done, posted_done, posted));
    if (rc < 0)
        posted_free(posted);
    return rc;
}

int hl_permits_acquire_many_async(hl_permits *semaphore, size_t count,
                                  const hl_acquire_options *passed, hl_permit_cb done, void *arg)
{
    hl_acquire_options options;
    int rc = done ? hli_handle_enter(HLI_HANDLE(semaphore), HLI_BLOCKING(NULL))
                  : hli_fail(NULL, HL_EINVAL, "done is NULL");

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->handle.name->client;
    rc = order_read_options(semaphore, count, passed, &options,
                            &(struct hli_completion){.is_async = true});
    if (rc == 0)
        rc = order_post(semaphore, count, &options, done, arg);
    hli_client_leave(client);
    return rc;
}

int hl_permits_acquire_async(hl_permits *semaphore, const hl_acquire_options *options,
                             hl_permit_cb done, void *arg)
{
    return hl_permits_acquire_many_async(semaphore, 1, options, done, arg);
}
