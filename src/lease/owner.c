/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Owners, and the thread-specific key that notices a thread's end. */
#include "lease/owner.h"

#include <limits.h>
#include <pthread.h>

static atomic_uint owner_counter;
static pthread_once_t owner_once = PTHREAD_ONCE_INIT;
static pthread_key_t owner_key;
static bool owner_key_works;
static void (*owner_exit_hook)(void);

static _Thread_local struct hl_owner *owner_mine;
static _Thread_local int owner_exit_rounds;

struct hl_owner *hli_owner_new(hl_client *client)
{
    struct hl_owner *owner = calloc(1, sizeof(*owner));

    if (!owner)
        return NULL;
    hli_ref_init(&owner->ref);
    owner->number = (atomic_fetch_add(&owner_counter, 1) + 1) & INT32_MAX;
    owner->client = client;
    return owner;
}

void hli_owner_ref(struct hl_owner *owner)
{
    hli_ref_take(&owner->ref);
}

void hli_owner_unref(struct hl_owner *owner)
{
    if (owner && hli_ref_drop(&owner->ref))
        free(owner);
}

/*
 * The thread ends. Other destructors may still release what it holds, and the order of destructors
 * is not defined: so wait for a late round of them, by setting the key again in each one before.
 * Not for the last: in that one ThreadSanitizer forgets the thread, and what runs after it crashes.
 */
static void owner_thread_exit(void *arg)
{
    struct hl_owner *owner = arg;

    if (++owner_exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1 &&
        pthread_setspecific(owner_key, owner) == 0)
        return;
    atomic_store(&owner->has_exited, true);
    if (atomic_load(&owner->holds) > 0 && owner_exit_hook)
        owner_exit_hook();
    owner_mine = NULL;
    hli_owner_unref(owner);
}

static void owner_make_key(void)
{
    owner_key_works = pthread_key_create(&owner_key, owner_thread_exit) == 0;
}

struct hl_owner *hli_owner_of_thread_if_any(void)
{
    return owner_mine;
}

struct hl_owner *hli_owner_of_thread(void)
{
    if (owner_mine)
        return owner_mine;
    pthread_once(&owner_once, owner_make_key);
    struct hl_owner *owner = owner_key_works ? hli_owner_new(NULL) : NULL;
    if (owner && pthread_setspecific(owner_key, owner) != 0) {
        hli_owner_unref(owner);
        return NULL;
    }
    owner_mine = owner;
    return owner;
}

void hli_owner_on_exit(void (*hook)(void))
{
    owner_exit_hook = hook;
}
