/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The bells: a list that only grows, of slots that are used again. */
#include "base/bell.h"

#include "base/check.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

enum { BELL_FREE = -1, BELL_TAKEN = -2 };

struct hli_bell {
    atomic_int fd; /* or BELL_FREE, or BELL_TAKEN while it is being hung */
    atomic_bool rung;
    atomic_int ringers;    /* who may be about to write to fd */
    struct hli_bell *next; /* immutable once the bell is in the list */
};

static _Atomic(struct hli_bell *) bell_list;

static struct hli_bell *bell_reuse(void)
{
    for (struct hli_bell *bell = atomic_load(&bell_list); bell; bell = bell->next) {
        int free_slot = BELL_FREE;
        if (atomic_compare_exchange_strong(&bell->fd, &free_slot, BELL_TAKEN))
            return bell;
    }
    return NULL;
}

static struct hli_bell *bell_add(void)
{
    struct hli_bell *bell = calloc(1, sizeof(*bell));

    if (!bell)
        return NULL;
    atomic_init(&bell->fd, BELL_TAKEN);
    bell->next = atomic_load(&bell_list);
    while (!atomic_compare_exchange_weak(&bell_list, &bell->next, bell))
        ;
    return bell;
}

struct hli_bell *hli_bell_hang(int eventfd)
{
    struct hli_bell *bell = bell_reuse();

    if (!bell)
        bell = bell_add();
    if (!bell)
        return NULL;
    atomic_store(&bell->rung, false);
    atomic_store(&bell->fd, eventfd);
    return bell;
}

/* A ringer counts itself before it reads fd; so once fd is changed and the count has been zero,
 * none can still write to it. */
void hli_bell_take_down(struct hli_bell *bell)
{
    if (!bell)
        return;
    atomic_store(&bell->fd, BELL_TAKEN);
    while (atomic_load(&bell->ringers) > 0)
        sched_yield();
    atomic_store(&bell->fd, BELL_FREE);
}

bool hli_bell_was_rung(struct hli_bell *bell)
{
    return atomic_exchange(&bell->rung, false);
}

static void bell_ring(struct hli_bell *bell)
{
    const uint64_t one = 1;

    atomic_fetch_add(&bell->ringers, 1);
    int fd = atomic_load(&bell->fd);
    if (fd >= 0) {
        atomic_store(&bell->rung, true);
        ssize_t ignored = write(fd, &one, sizeof(one)); /* a full counter is a rung bell too */
        (void)ignored;
    }
    atomic_fetch_sub(&bell->ringers, 1);
}

void hli_bell_ring_all(void)
{
    int saved = errno;

    for (struct hli_bell *bell = atomic_load(&bell_list); bell; bell = bell->next)
        bell_ring(bell);
    errno = saved;
}

void hli_bell_forget_all(void)
{
    for (struct hli_bell *bell = atomic_load(&bell_list); bell; bell = bell->next) {
        atomic_store(&bell->fd, BELL_FREE);
        atomic_store(&bell->ringers, 0);
    }
}
