/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The permit semaphore: handles, what is known without a request, and releasing. */
#include "sync/permit_semaphore.h"

#include "base/error.h"
#include "sync/named.h"
#include "sync/query.h"
#include "sync/released.h"

#include <stdlib.h>

int hl_permit_semaphore_new(hl_client *client, const char *name,
                            hl_permit_semaphore **ret_semaphore, hl_error *err)
{
    const struct hli_named named = {.kind = &hli_kind_permit, .bytes = name};

    if (!ret_semaphore)
        return hli_fail(err, HL_EINVAL, "ret_semaphore is NULL");
    hl_permit_semaphore *semaphore = malloc(sizeof(*semaphore));
    if (!semaphore)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = hli_named_get(client, &named, &semaphore->name, err);
    if (rc < 0)
        free(semaphore);
    else
        *ret_semaphore = semaphore;
    return rc;
}

void hl_permit_semaphore_free(hl_permit_semaphore *semaphore)
{
    if (!semaphore)
        return;
    hli_named_put(semaphore->name);
    free(semaphore);
}

const char *hl_permit_semaphore_name(const hl_permit_semaphore *semaphore, size_t *ret_length)
{
    if (!semaphore)
        return NULL;
    if (ret_length)
        *ret_length = semaphore->name->length;
    return semaphore->name->bytes;
}

int hli_permits_enter(const hl_permit_semaphore *semaphore, hl_error *err)
{
    int rc = semaphore ? hli_client_enter(semaphore->name->client) : HL_EINVAL;

    return rc == 0 ? 0
                   : hli_fail(err, rc, "%s", semaphore ? hl_err_text(rc) : "the semaphore is NULL");
}

void hli_permits_leave(const hl_permit_semaphore *semaphore)
{
    hli_client_leave(semaphore->name->client);
}

int hli_permits_enter_with(const hl_permit_semaphore *semaphore, const hl_permit *permit,
                           struct hli_permit_id *ret_id, hl_error *err)
{
    if (semaphore && !hli_permit_read(permit, ret_id))
        return hli_fail(err, HL_EINVAL, "a permit's id has 32 lower-case hex digits");
    return hli_permits_enter(semaphore, err);
}

/* Until when it is valid for this client; 0 when it is not held. */
static hli_ns permit_validity(const hl_permit_semaphore *semaphore, const hl_permit *permit,
                              hli_ns *ret_now)
{
    struct hli_permit_id id;
    hli_ns until = 0;

    if (!semaphore || hli_client_check(semaphore->name->client) < 0 ||
        !hli_permit_read(permit, &id))
        return 0;
    struct hli_name *name = hli_permit_find_name(semaphore, &id);
    if (!name)
        return 0;
    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_permit_tenure(name, &id);
    *ret_now = hli_now();
    if (tenure && tenure->state == HLI_TENURE_OWN && *ret_now < hli_hold_validity(tenure))
        until = hli_hold_validity(tenure);
    pthread_mutex_unlock(&name->mutex);
    hli_name_unref(name);
    return until;
}

bool hl_permit_semaphore_is_held(const hl_permit_semaphore *semaphore, const hl_permit *permit)
{
    hli_ns now = 0;

    return permit_validity(semaphore, permit, &now) > 0;
}

int64_t hl_permit_semaphore_validity_ms(const hl_permit_semaphore *semaphore,
                                        const hl_permit *permit)
{
    hli_ns now = 0, until = permit_validity(semaphore, permit, &now);

    return until > 0 ? hli_ms_left(now, until) : 0;
}

/* Whose it is: the permit's name and its hold's owner, each with a reference. */
struct permit_held {
    struct hli_name *name; /* NULL: it is nobody's of this client, as far as that knows */
    struct hl_owner *owner;
};

static struct permit_held permit_look_up(const hl_permit_semaphore *semaphore,
                                         const struct hli_permit_id *id)
{
    struct permit_held held = {.name = hli_permit_find_name(semaphore, id)};

    if (!held.name)
        return held;
    pthread_mutex_lock(&held.name->mutex);
    const struct hli_tenure *tenure = hli_permit_tenure(held.name, id);
    if (tenure) {
        held.owner = tenure->hold.owner;
        hli_owner_ref(held.owner);
    }
    pthread_mutex_unlock(&held.name->mutex);
    if (!tenure) {
        hli_name_unref(held.name);
        held.name = NULL;
    }
    return held;
}

static void permit_held_deinit(struct permit_held *held)
{
    if (!held->name)
        return;
    hli_owner_unref(held->owner);
    hli_name_unref(held->name);
}

int hl_permit_semaphore_release(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                hl_error *err)
{
    const struct hli_release_way way = {.is_posted = false};
    struct hli_permit_id id;
    int rc = hli_permits_enter_with(semaphore, permit, &id, err);

    if (rc < 0)
        return rc;
    struct permit_held held = permit_look_up(semaphore, &id);
    if (held.name)
        rc = hli_released_block(held.name, held.owner, &way, err);
    else
        rc = hli_query_block(hli_permit_release_query(semaphore, &id), NULL, err);
    permit_held_deinit(&held);
    hli_permits_leave(semaphore);
    return rc;
}

int hl_permit_semaphore_release_async(hl_permit_semaphore *semaphore, const hl_permit *permit,
                                      hl_done_cb done, void *arg)
{
    const struct hli_release_way way = {.is_posted = false};
    struct hli_permit_id id;
    int rc = done ? hli_permits_enter_with(semaphore, permit, &id, NULL) : HL_EINVAL;

    if (rc < 0)
        return rc;
    hl_client *client = semaphore->name->client;
    struct permit_held held = permit_look_up(semaphore, &id);
    if (held.name)
        rc = hli_released_post(held.name, held.owner, &way, &(struct hli_release_told){done, arg});
    else
        rc = hli_query_post(hli_permit_release_query(semaphore, &id),
                            &(struct hli_told){.done = done, .arg = arg});
    permit_held_deinit(&held);
    hli_client_leave(client);
    return rc;
}
