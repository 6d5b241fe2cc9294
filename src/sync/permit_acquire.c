/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Acquiring permits: one or several by one request, blocking and async. */
#include "base/error.h"
#include "base/random.h"
#include "lease/hold.h"
#include "sync/permit_semaphore.h"
#include "sync/request.h"

#include <stdlib.h>

/* One call. All that holding needs is made before anything is sent. */
struct permit_order {
    struct hli_name *name; /* counted: of the first permit */
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

static struct hli_name *order_name(const hl_permit_semaphore *semaphore, struct hli_lane lane)
{
    const struct hli_name *other = semaphore->name;
    const struct hli_name_key key = {&hli_kind_permit, other->bytes, other->length, lane};
    struct hli_name *name = NULL;

    return hli_name_get(other->client, &key, &name) == 0 ? name : NULL;
}

static struct hli_tenure *order_tenure(const hl_permit_semaphore *semaphore, struct hli_lane lane)
{
    struct hli_name *name = order_name(semaphore, lane);

    if (!name)
        return NULL;
    struct hli_tenure *tenure = hli_tenure_new(name);
    hli_name_unref(name); /* the tenure has one of its own */
    return tenure;
}

static int order_init(struct permit_order *order, const hl_permit_semaphore *semaphore,
                      size_t count)
{
    uint64_t random = hli_random_u64();
    bool is_whole;

    *order = (struct permit_order){.count = count};
    order->name = order_name(semaphore, hli_permit_lane(random, 0, count));
    if (count > 1)
        order->others = calloc(count - 1, sizeof(struct hli_tenure *)); /* NOLINT: of pointers */
    is_whole = order->name && (count == 1 || order->others);
    for (size_t i = 1; is_whole && i < count; i++) {
        order->others[i - 1] = order_tenure(semaphore, hli_permit_lane(random, i, count));
        is_whole = order->others[i - 1] != NULL;
    }
    if (!is_whole)
        order_deinit(order);
    return is_whole ? 0 : HL_ENOMEM;
}

/* What the first one's request brought; its hold's owner has a reference. False: it is lost, and
 * forgotten since, or the client is closed. */
static bool order_view(const struct permit_order *order, struct hli_adoption *ret)
{
    pthread_mutex_lock(&order->name->mutex);
    const struct hli_tenure *first = order->name->current;
    if (!first)
        first = TAILQ_LAST(&order->name->past, hli_tenures); /* it is lost by now */
    bool is_known = first && first->hold.is_accepted;
    if (is_known) {
        *ret = hli_hold_adoption(first);
        hli_owner_ref(ret->hold.owner);
    }
    pthread_mutex_unlock(&order->name->mutex);
    return is_known;
}

/* The first permit is held: so are the others, each by itself from now on. Errors: HL_ELOST. */
static int order_fulfil(struct permit_order *order, hl_permit *ret_permits, hl_error *err)
{
    const uint64_t random = hli_name_lane(order->name).half[0];
    struct hli_adoption adoption;
    char shown[96];

    if (!order_view(order, &adoption))
        return hli_fail(
            err, HL_ELOST, "acquire '%s': it was lost before the call returned",
            hli_error_escape(shown, sizeof(shown), order->name->bytes, order->name->length));
    for (size_t i = 0; i < order->count; i++) {
        const struct hli_permit_id id =
            hli_permit_id(hli_permit_lane(random, i, order->count), adoption.number);
        hli_permit_show(&id, &ret_permits[i]);
        if (i > 0 && hli_hold_adopt(order->others[i - 1], &adoption))
            order->others[i - 1] = NULL; /* its name has it */
    }
    hli_owner_unref(adoption.hold.owner);
    return 0;
}

static int order_read_options(const hl_permit_semaphore *semaphore, size_t count,
                              const hl_acquire_options *passed, hl_acquire_options *ret,
                              hl_error *err)
{
    int rc = hli_request_read_options(semaphore->name->client, passed, ret, err);

    if (rc < 0)
        return rc;
    if (count < 1 || count > HL_PERMITS_AT_ONCE)
        return hli_fail(err, HL_EINVAL, "count is not from 1 to %d", HL_PERMITS_AT_ONCE);
    if (ret->min_hold_ms != 0)
        return hli_fail(err, HL_EINVAL, "min_hold_ms is not for permits");
    return 0;
}

static struct hli_acquire_way order_way(const hl_permit_semaphore *semaphore, size_t count)
{
    return (struct hli_acquire_way){
        .watch_ms = semaphore->name->client->settings.watchdog_timeout_ms,
        .need = (uint32_t)count,
    };
}

static int order_block(hl_permit_semaphore *semaphore, size_t count,
                       const hl_acquire_options *options, hl_permit *ret_permits, hl_error *err)
{
    const struct hli_acquire_way way = order_way(semaphore, count);
    struct permit_order order;
    int rc = order_init(&order, semaphore, count);

    if (rc < 0)
        return hli_fail(err, rc, "%s", hl_err_text(rc));
    rc = hli_request_block(&(struct hli_request){order.name, &way, options}, err);
    if (rc == 0)
        rc = order_fulfil(&order, ret_permits, err);
    order_deinit(&order);
    return rc;
}

int hl_permit_semaphore_acquire_many(hl_permit_semaphore *semaphore, size_t count,
                                     const hl_acquire_options *passed, hl_permit *ret_permits,
                                     hl_error *err)
{
    hl_acquire_options options;
    int rc = hli_permits_enter(semaphore, err);

    if (rc < 0)
        return rc;
    rc = ret_permits ? order_read_options(semaphore, count, passed, &options, err)
                     : hli_fail(err, HL_EINVAL, "the place for permits is NULL");
    if (rc == 0)
        rc = order_block(semaphore, count, &options, ret_permits, err);
    hli_permits_leave(semaphore);
    return rc;
}

int hl_permit_semaphore_acquire_with(hl_permit_semaphore *semaphore,
                                     const hl_acquire_options *options, hl_permit *ret_permit,
                                     hl_error *err)
{
    return hl_permit_semaphore_acquire_many(semaphore, 1, options, ret_permit, err);
}

int hl_permit_semaphore_acquire_for(hl_permit_semaphore *semaphore, int64_t wait_ms,
                                    hl_permit *ret_permit, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    return hl_permit_semaphore_acquire_with(semaphore, &options, ret_permit, err);
}

int hl_permit_semaphore_acquire(hl_permit_semaphore *semaphore, hl_permit *ret_permit,
                                hl_error *err)
{
    return hl_permit_semaphore_acquire_for(semaphore, HL_WAIT_FOREVER, ret_permit, err);
}

int hl_permit_semaphore_try_acquire(hl_permit_semaphore *semaphore, hl_permit *ret_permit,
                                    hl_error *err)
{
    return hl_permit_semaphore_acquire_for(semaphore, HL_NO_WAIT, ret_permit, err);
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
    posted->done(code, code == 0 ? posted->permits : NULL, err, posted->arg);
    posted_free(posted);
}

static int order_post(hl_permit_semaphore *semaphore, struct permit_posted *posted, size_t count,
                      const hl_acquire_options *options)
{
    const struct hli_acquire_way way = order_way(semaphore, count);
    int rc = order_init(&posted->order, semaphore, count);

    if (rc < 0) {
        free(posted);
        return rc;
    }
    const struct hli_request request = {posted->order.name, &way, options};
    rc = hli_request_post(&request, posted_done, posted);
    if (rc < 0)
        posted_free(posted);
    return rc;
}

static int order_post_checked(hl_permit_semaphore *semaphore, size_t count,
                              const hl_acquire_options *passed, hl_permit_cb done, void *arg)
{
    hl_acquire_options options;
    int rc = order_read_options(semaphore, count, passed, &options, NULL);

    if (rc < 0 || !options.owner)
        return HL_EINVAL;
    struct permit_posted *posted = calloc(1, sizeof(*posted) + count * sizeof(hl_permit));
    if (!posted)
        return HL_ENOMEM;
    posted->done = done;
    posted->arg = arg;
    return order_post(semaphore, posted, count, &options);
}

int hl_permit_semaphore_acquire_async(hl_permit_semaphore *semaphore, size_t count,
                                      const hl_acquire_options *options, hl_permit_cb done,
                                      void *arg)
{
    int rc = done ? hli_permits_enter(semaphore, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->name->client;
    rc = order_post_checked(semaphore, count, options, done, arg);
    hli_client_leave(client);
    return rc;
}
