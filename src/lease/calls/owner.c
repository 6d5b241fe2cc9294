/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Owners and their handles, and the thread-specific key that notices a thread's end. */
#include "lease/calls/owner.h"

#include "base/error.h"
#include "lease/calls/client.h"

#include <limits.h>
#include <pthread.h>

static atomic_uint_fast64_t owner_counter;
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
    owner->number = atomic_fetch_add(&owner_counter, 1) + 1;
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
 * The destructor of a thread's owner. Other destructors may still release the thread's holds, and
 * the order of destructors is not defined; so this one sets its key again until the last round but
 * one. It avoids the last round, in which ThreadSanitizer forgets the thread: code that runs after
 * that crashes.
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

/* A plugin that contains the static library may be unloaded: a thread that ends afterwards must not
 * call the destructor. */
__attribute__((destructor)) static void owner_delete_key(void)
{
    if (owner_key_works)
        pthread_key_delete(owner_key);
    owner_key_works = false;
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

int hl_owner_new(hl_client *client, hl_owner **ret_owner)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(NULL, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!ret_owner)
        return hli_fail(NULL, HL_EINVAL, "ret_owner is NULL");
    struct hl_owner *owner = hli_owner_new(client);
    if (!owner)
        return hli_no_memory(NULL);
    hli_client_ref(client); /* the handle's */
    *ret_owner = owner;
    return 0;
}

void hl_owner_free(hl_owner *owner)
{
    if (!owner)
        return;
    hl_client *client = owner->client;
    int cancelability = hli_cancelability_off(); /* the last reference frees a closed client */
    bool is_forked = hli_client_check(client) == HL_EFORKED;
    atomic_store(&owner->has_exited, true);
    hli_owner_unref(owner);
    if (!is_forked)
        hli_client_unref(client);
    hli_cancelability_restore(cancelability);
}
