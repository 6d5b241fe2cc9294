/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Queries of an owner's own hold, without I/O. The local state is on the safe side: it never claims
 * more than the server grants. */
#include <hirelock/fence.h>

#include "sync/lock/lock.h"

static struct hli_lock_view lock_view_name(struct hli_name *name, const struct hl_owner *owner)
{
    struct hli_lock_view view = {.is_held = false};

    hli_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    hli_ns now = hli_now();
    if (tenure && tenure->hold.is_accepted && hli_hold_is_valid(tenure, now))
        view = (struct hli_lock_view){
            .is_held = true,
            .validity_ms = hli_ms_left(now, hli_hold_validity(tenure)),
            .count = tenure->hold.count,
            .token = tenure->hold.token,
        };
    hli_mutex_unlock(&name->mutex);
    return view;
}

struct hli_lock_view hli_lock_view(const hl_lock *lock, const hl_owner *owner)
{
    const struct hl_owner *mine = owner ? owner : hli_owner_of_thread_if_any();
    struct hli_lock_view view = {.is_held = false};

    if (!lock || !mine || hli_client_check(lock->handle.name->client) < 0)
        return view;
    if (lock->type->several)
        return lock->type->several->view(lock, mine);
    struct hli_name *name = hli_lock_look_up(lock, mine, hli_name_find);
    if (!name)
        return view;
    view = lock_view_name(name, mine);
    hli_name_unref(name);
    return view;
}

bool hl_lock_is_held(const hl_lock *lock, const hl_owner *owner)
{
    return hli_lock_view(lock, owner).is_held;
}

int64_t hl_lock_validity_ms(const hl_lock *lock, const hl_owner *owner)
{
    return hli_lock_view(lock, owner).validity_ms;
}

uint32_t hl_lock_hold_count(const hl_lock *lock, const hl_owner *owner)
{
    return hli_lock_view(lock, owner).count;
}

uint64_t hl_lock_token(const hl_lock *lock, const hl_owner *owner)
{
    return hli_lock_view(lock, owner).token;
}
