/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Buzzers: heard by who polls, and never in somebody else's file. */

#include "base/buzzer.h"

#include "support/test.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

static bool is_heard(const struct hli_buzzer *buzzer, int wait_ms)
{
    struct pollfd polled = {.fd = buzzer->fd, .events = POLLIN};
    return poll(&polled, 1, wait_ms) == 1;
}

Test(buzzer, is_heard_until_it_is_hushed)
{
    struct hli_buzzer buzzer;
    hli_buzzer_init(&buzzer);
    check_int(hli_buzzer_open(&buzzer), 0);
    check(!is_heard(&buzzer, 0));
    hli_buzzer_buzz(&buzzer);
    hli_buzzer_buzz(&buzzer);
    check(is_heard(&buzzer, 0));
    hli_buzzer_hush(&buzzer);
    check(!is_heard(&buzzer, 0));
    hli_buzzer_close(&buzzer);
}

Test(buzzer, is_opened_once_and_closed_once)
{
    struct hli_buzzer buzzer;
    hli_buzzer_init(&buzzer);
    hli_buzzer_close(&buzzer);
    hli_buzzer_buzz(&buzzer);
    check_int(hli_buzzer_open(&buzzer), 0);
    int fd = buzzer.fd;
    check_int(hli_buzzer_open(&buzzer), 0);
    check_int(buzzer.fd, fd);
    hli_buzzer_close(&buzzer);
    hli_buzzer_close(&buzzer);
    check_int(hli_buzzer_open(&buzzer), 0);
    hli_buzzer_abandon(&buzzer);
    check_int(buzzer.fd, -1);
}

static atomic_bool stops;

static void *buzz_on(void *buzzer)
{
    while (!stops)
        hli_buzzer_buzz(buzzer);
    return NULL;
}

/* The number of the one that is closed goes to the next file that is opened: here an eventfd that
 * must stay at zero. */
Test(buzzer, never_writes_into_the_file_that_has_its_number_next)
{
    struct hli_buzzer buzzer;
    pthread_t thread;
    hli_buzzer_init(&buzzer);
    check_int(pthread_create(&thread, NULL, buzz_on, &buzzer), 0);
    for (int i = 0; i < 2000; i++) {
        check_int(hli_buzzer_open(&buzzer), 0);
        int fd = buzzer.fd;
        sched_yield();
        hli_buzzer_close(&buzzer);
        int next = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        eventfd_t count = 0;
        check_int(next, fd);
        sched_yield();
        check(eventfd_read(next, &count) < 0);
        close(next);
    }
    stops = true;
    pthread_join(thread, NULL);
}
