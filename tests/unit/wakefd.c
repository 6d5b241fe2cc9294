/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Wakefds: heard by the thread that polls them, and never in another file; and the wake
 * list of them, which a signal handler fires. */

#include "base/wakefd.h"

#include "support/test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

static bool is_woken(const struct hli_wakefd *wakefd)
{
    struct pollfd polled = {.fd = wakefd->fd, .events = POLLIN};
    return poll(&polled, 1, 0) == 1;
}

Test(wakefd, stays_readable_until_it_is_cleared)
{
    struct hli_wakefd wakefd;
    hli_wakefd_init(&wakefd);
    check_int(hli_wakefd_open(&wakefd), 0);
    check(!is_woken(&wakefd));
    hli_wakefd_wake(&wakefd);
    hli_wakefd_wake(&wakefd);
    check(is_woken(&wakefd));
    hli_wakefd_clear(&wakefd);
    check(!is_woken(&wakefd));
    hli_wakefd_close(&wakefd);
}

Test(wakefd, is_opened_once_and_closed_once)
{
    struct hli_wakefd wakefd;
    hli_wakefd_init(&wakefd);
    hli_wakefd_close(&wakefd);
    hli_wakefd_wake(&wakefd);
    check_int(hli_wakefd_open(&wakefd), 0);
    int fd = wakefd.fd;
    check_int(hli_wakefd_open(&wakefd), 0);
    check_int(wakefd.fd, fd);
    hli_wakefd_close(&wakefd);
    hli_wakefd_close(&wakefd);
    check_int(hli_wakefd_open(&wakefd), 0);
    hli_wakefd_abandon(&wakefd);
    check_int(wakefd.fd, -1);
}

static atomic_bool stops;

static void *wake_on(void *wakefd)
{
    while (!stops)
        hli_wakefd_wake(wakefd);
    return NULL;
}

/* The number of the one that is closed goes to the next file that is opened: here an eventfd that
 * must stay at zero. */
static void check_next_file(int fd)
{
    int next = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    eventfd_t count = 0;
    check_int(next, fd);
    sched_yield();
    check(eventfd_read(next, &count) < 0);
    close(next);
}

Test(wakefd, never_writes_into_the_file_that_has_its_number_next)
{
    struct hli_wakefd wakefd;
    pthread_t thread;
    hli_wakefd_init(&wakefd);
    check_int(pthread_create(&thread, NULL, wake_on, &wakefd), 0);
    for (int i = 0; i < 2000; i++) {
        check_int(hli_wakefd_open(&wakefd), 0);
        int fd = wakefd.fd;
        sched_yield();
        hli_wakefd_close(&wakefd);
        check_next_file(fd);
    }
    stops = true;
    pthread_join(thread, NULL);
}

Test(wake_list, is_fired_as_a_whole)
{
    struct hli_wakefd *listed[2] = {hli_wakefd_open_listed(), hli_wakefd_open_listed()};
    check(!hli_wakefd_was_fired(listed[0]));
    hli_wakefd_fire_all();
    for (int i = 0; i < 2; i++) {
        check(is_woken(listed[i]));
        check(hli_wakefd_was_fired(listed[i]));
        check(!hli_wakefd_was_fired(listed[i]));
    }
}

Test(wake_list, leaves_a_closed_one_alone_and_uses_it_again)
{
    struct hli_wakefd *listed = hli_wakefd_open_listed();
    hli_wakefd_fire_all();
    hli_wakefd_close_listed(listed);
    hli_wakefd_fire_all();
    check_int(listed->fd, -1);
    check(hli_wakefd_open_listed() == listed);
    check(!hli_wakefd_was_fired(listed));
    check(!is_woken(listed));
    hli_wakefd_fire_all();
    check(is_woken(listed));
    hli_wakefd_close_listed(NULL);
}

Test(wake_list, is_the_parents_alone_after_a_fork)
{
    struct hli_wakefd *listed = hli_wakefd_open_listed();
    hli_wakefd_abandon_all();
    check_int(listed->fd, -1);
    check(hli_wakefd_open_listed() == listed);
}

Test(wake_list, leaves_errno_and_a_full_counter_alone)
{
    struct hli_wakefd *listed = hli_wakefd_open_listed();
    check_int(eventfd_write(listed->fd, UINT64_MAX - 1), 0);
    errno = 4711;
    hli_wakefd_fire_all();
    check_int(errno, 4711);
    check(hli_wakefd_was_fired(listed));
}

static void on_signal(int number)
{
    (void)number;
    hli_wakefd_fire_all(); /* NOLINT(bugprone-signal-handler,cert-sig30-c): it may */
}

Test(wake_list, may_be_fired_in_a_signal_handler)
{
    struct hli_wakefd *listed = hli_wakefd_open_listed();
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    check(is_woken(listed));
}

static void *fire_on(void *arg)
{
    (void)arg;
    while (!stops)
        hli_wakefd_fire_all();
    return NULL;
}

Test(wake_list, never_writes_into_the_file_that_has_a_closed_ones_number_next)
{
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, fire_on, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        struct hli_wakefd *listed = hli_wakefd_open_listed();
        int fd = listed->fd;
        hli_wakefd_close_listed(listed);
        check_next_file(fd);
    }
    stops = true;
    pthread_join(thread, NULL);
}
