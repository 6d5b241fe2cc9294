/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The bells: rung by anybody, heard by all, and never by one that was taken down. */

#include "base/bell.h"

#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

static int counter_new(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    check(fd >= 0);
    return fd;
}

static uint64_t counter_take(int fd)
{
    uint64_t value = 0;
    return read(fd, &value, sizeof value) == sizeof value ? value : 0;
}

Test(bell, is_heard_by_everybody_who_has_one)
{
    int fd[2] = {counter_new(), counter_new()};
    struct hli_bell *bell[2] = {hli_bell_hang(fd[0]), hli_bell_hang(fd[1])};
    check(!hli_bell_was_rung(bell[0]));
    hli_bell_ring_all();
    for (int i = 0; i < 2; i++) {
        check_int(counter_take(fd[i]), 1);
        check(hli_bell_was_rung(bell[i]));
        check(!hli_bell_was_rung(bell[i]));
    }
}

Test(bell, is_silent_once_it_was_taken_down_and_is_hung_again)
{
    int fd = counter_new(), other = counter_new();
    struct hli_bell *bell = hli_bell_hang(fd);
    hli_bell_ring_all();
    hli_bell_take_down(bell);
    counter_take(fd);
    hli_bell_ring_all();
    check_int(counter_take(fd), 0);
    check(hli_bell_hang(other) == bell);
    check(!hli_bell_was_rung(bell));
    hli_bell_ring_all();
    check_int(counter_take(other), 1);
    hli_bell_take_down(NULL);
}

Test(bell, is_the_parents_alone_after_a_fork)
{
    int fd = counter_new();
    check(hli_bell_hang(fd) != NULL);
    hli_bell_forget_all();
    hli_bell_ring_all();
    check_int(counter_take(fd), 0);
}

Test(bell, leaves_errno_and_a_full_counter_alone)
{
    int fd = counter_new();
    const uint64_t full = UINT64_MAX - 1;
    struct hli_bell *bell = hli_bell_hang(fd);
    check_int(write(fd, &full, sizeof full), sizeof full);
    errno = 4711;
    hli_bell_ring_all();
    check_int(errno, 4711);
    check(hli_bell_was_rung(bell));
}

static void on_signal(int number)
{
    (void)number;
    hli_bell_ring_all(); /* NOLINT(bugprone-signal-handler,cert-sig30-c): it may */
}

Test(bell, may_be_rung_in_a_signal_handler)
{
    int fd = counter_new();
    check(hli_bell_hang(fd) != NULL);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    check_int(counter_take(fd), 1);
}

static void *ring_until_told(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        hli_bell_ring_all();
    return NULL;
}

Test(bell, is_not_rung_after_it_was_taken_down_whoever_rings_meanwhile)
{
    static atomic_bool stop;
    pthread_t thread;
    int fd = counter_new();
    check_int(pthread_create(&thread, NULL, ring_until_told, &stop), 0);
    for (int i = 0; i < 2000; i++) {
        hli_bell_take_down(hli_bell_hang(fd));
        counter_take(fd);
        check_int(counter_take(fd), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}
