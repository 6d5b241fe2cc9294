/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What an owner can ask about its own hold without any I/O: local knowledge, on the safe side of
 * the server's. */
#include "sync/lock.h"

/* The tenure in which the owner has a hold that is valid now, or NULL. With the name's mutex. */
static const struct hli_tenure *lock_valid_hold(const hl_lock *lock, const hl_owner *owner)
{
    const struct hl_owner *mine = owner ? owner : hli_owner_of_thread_if_any();
    const struct hli_tenure *tenure = mine ? hli_name_hold_of(lock->name, mine) : NULL;

    if (!tenure || tenure->state != HLI_TENURE_OWN || !tenure->hold.is_accepted)
        return NULL;
    return hli_now() < hli_hold_validity(tenure) ? tenure : NULL;
}

bool hl_lock_is_held(const hl_lock *lock, const hl_owner *owner)
{
    if (!lock || hli_client_check(lock->name->client) < 0)
        return false;
    pthread_mutex_lock(&lock->name->mutex);
    bool held = lock_valid_hold(lock, owner) != NULL;
    pthread_mutex_unlock(&lock->name->mutex);
    return held;
}

int64_t hl_lock_validity_ms(const hl_lock *lock, const hl_owner *owner)
{
    if (!lock || hli_client_check(lock->name->client) < 0)
        return 0;
    pthread_mutex_lock(&lock->name->mutex);
    const struct hli_tenure *tenure = lock_valid_hold(lock, owner);
    int64_t left = tenure ? hli_ms_left(hli_now(), hli_hold_validity(tenure)) : 0;
    pthread_mutex_unlock(&lock->name->mutex);
    return left;
}

uint32_t hl_lock_hold_count(const hl_lock *lock, const hl_owner *owner)
{
    if (!lock || hli_client_check(lock->name->client) < 0)
        return 0;
    pthread_mutex_lock(&lock->name->mutex);
    const struct hli_tenure *tenure = lock_valid_hold(lock, owner);
    uint32_t count = tenure ? tenure->hold.count : 0;
    pthread_mutex_unlock(&lock->name->mutex);
    return count;
}
