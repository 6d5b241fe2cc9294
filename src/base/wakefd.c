/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Wakefds, and the wake list: it only grows, and its entries are used again. */
#include "base/wakefd.h"

#include "base/check.h"
#include "base/thread.h"

#include <hirelock/error.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct wakefd_entry {
    struct hli_wakefd wakefd;
    atomic_bool is_taken, was_fired;
    struct wakefd_entry *next; /* immutable once the entry is in the list */
};

static _Atomic(struct wakefd_entry *) wakefd_list;

void hli_wakefd_init(struct hli_wakefd *wakefd)
{
    atomic_init(&wakefd->fd, -1);
    atomic_init(&wakefd->users, 0);
}

int hli_wakefd_open(struct hli_wakefd *wakefd)
{
    if (atomic_load(&wakefd->fd) < 0)
        atomic_store(&wakefd->fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return atomic_load(&wakefd->fd) < 0 ? HL_ENOMEM : 0;
}

/* A thread counts itself in `users` before it reads fd. So once fd is changed and the count has
 * been zero, no thread can still write to the old one. */
void hli_wakefd_close(struct hli_wakefd *wakefd)
{
    int fd = atomic_exchange(&wakefd->fd, -1);

    if (fd < 0)
        return;
    while (atomic_load(&wakefd->users) > 0)
        hli_thread_yield();
    close(fd);
}

void hli_wakefd_wake(struct hli_wakefd *wakefd)
{
    atomic_fetch_add(&wakefd->users, 1);
    int fd = atomic_load(&wakefd->fd);
    if (fd >= 0)
        eventfd_write(fd, 1); /* it fails only when the counter is full, and that wakes too */
    atomic_fetch_sub(&wakefd->users, 1);
}

void hli_wakefd_clear(struct hli_wakefd *wakefd)
{
    eventfd_t count;

    eventfd_read(atomic_load(&wakefd->fd), &count);
}

/* The child has none of the threads that the parent counted. */
void hli_wakefd_abandon(struct hli_wakefd *wakefd)
{
    int fd = atomic_exchange(&wakefd->fd, -1);

    if (fd >= 0)
        close(fd);
    atomic_store(&wakefd->users, 0);
}

static struct wakefd_entry *wakefd_take_entry(void)
{
    struct wakefd_entry *entry = atomic_load(&wakefd_list);

    for (; entry; entry = entry->next)
        if (!atomic_exchange(&entry->is_taken, true))
            return entry;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    hli_wakefd_init(&entry->wakefd);
    atomic_init(&entry->is_taken, true);
    entry->next = atomic_load(&wakefd_list);
    while (!atomic_compare_exchange_weak(&wakefd_list, &entry->next, entry))
        ;
    return entry;
}

struct hli_wakefd *hli_wakefd_open_listed(void)
{
    struct wakefd_entry *entry = wakefd_take_entry();

    if (!entry)
        return NULL;
    atomic_store(&entry->was_fired, false);
    if (hli_wakefd_open(&entry->wakefd) == 0)
        return &entry->wakefd;
    atomic_store(&entry->is_taken, false);
    return NULL;
}

void hli_wakefd_close_listed(struct hli_wakefd *wakefd)
{
    if (!wakefd)
        return;
    hli_wakefd_close(wakefd);
    atomic_store(&HLI_OF(wakefd, struct wakefd_entry, wakefd)->is_taken, false);
}

void hli_wakefd_fire_all(void)
{
    int saved = errno;

    for (struct wakefd_entry *entry = atomic_load(&wakefd_list); entry; entry = entry->next) {
        atomic_store(&entry->was_fired, true);
        hli_wakefd_wake(&entry->wakefd);
    }
    errno = saved;
}

bool hli_wakefd_was_fired(struct hli_wakefd *wakefd)
{
    return atomic_exchange(&HLI_OF(wakefd, struct wakefd_entry, wakefd)->was_fired, false);
}

void hli_wakefd_abandon_all(void)
{
    for (struct wakefd_entry *entry = atomic_load(&wakefd_list); entry; entry = entry->next) {
        hli_wakefd_abandon(&entry->wakefd);
        atomic_store(&entry->is_taken, false);
    }
}
