/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What an owner can ask about its own hold without any I/O: local knowledge, on the safe side of
 * the server's. */
#include <hirelock/fenced_lock.h>

#include "sync/lock.h"
#include "sync/multi_lock.h"

/* What is known about a hold that is valid now; all zero when there is none. */
struct lock_view {
    bool is_held;
    int64_t validity_ms;
    uint32_t count;
    uint64_t token;
};

static struct lock_view lock_view_name(struct hli_name *name, const struct hl_owner *owner)
{
    struct lock_view view = {.is_held = false};

    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    hli_ns now = hli_now();
    if (tenure && tenure->state == HLI_TENURE_OWN && tenure->hold.is_accepted &&
        now < hli_hold_validity(tenure))
        view = (struct lock_view){
            .is_held = true,
            .validity_ms = hli_ms_left(now, hli_hold_validity(tenure)),
            .count = tenure->hold.count,
            .token = tenure->hold.token,
        };
    pthread_mutex_unlock(&name->mutex);
    return view;
}

static struct lock_view lock_view(const hl_lock *lock, const hl_owner *owner);

/* The least of each; and a token is no member's. */
static struct lock_view lock_view_members(const struct hli_multi *multi, const hl_owner *owner)
{
    struct lock_view least = lock_view(&multi->members[0], owner);

    for (size_t i = 1; i < multi->count; i++) {
        const struct lock_view view = lock_view(&multi->members[i], owner);
        least.is_held = least.is_held && view.is_held;
        if (view.validity_ms < least.validity_ms)
            least.validity_ms = view.validity_ms;
        if (view.count < least.count)
            least.count = view.count;
    }
    least.token = 0;
    return least;
}

static struct lock_view lock_view(const hl_lock *lock, const hl_owner *owner)
{
    const struct hl_owner *mine = owner ? owner : hli_owner_of_thread_if_any();
    struct lock_view view = {.is_held = false};

    if (!lock || !mine || hli_client_check(lock->name->client) < 0)
        return view;
    if (hli_multi_of(lock))
        return lock_view_members(hli_multi_of(lock), mine);
    struct hli_name *name = hli_lock_find_name(lock, mine);
    if (!name)
        return view;
    view = lock_view_name(name, mine);
    hli_name_unref(name);
    return view;
}

bool hl_lock_is_held(const hl_lock *lock, const hl_owner *owner)
{
    return lock_view(lock, owner).is_held;
}

int64_t hl_lock_validity_ms(const hl_lock *lock, const hl_owner *owner)
{
    return lock_view(lock, owner).validity_ms;
}

uint32_t hl_lock_hold_count(const hl_lock *lock, const hl_owner *owner)
{
    return lock_view(lock, owner).count;
}

uint64_t hl_lock_token(const hl_lock *lock, const hl_owner *owner)
{
    return lock_view(lock, owner).token;
}
