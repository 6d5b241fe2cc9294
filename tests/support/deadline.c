/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Reads the clock and naps; nothing else in the tests sleeps. And looks once, when a test program
 * begins, at how busy the machine is. */
#include "deadline.h"

#include <time.h>

#include "test.h"

enum { DEADLINE_HANG_MS = 20000 };
enum { LOAD_LOOKS = 5, LOAD_USUAL = 2 /* to a core: what the tests bring along */, LOAD_MAX = 22 };

/* Threads that run or want to, to a core: now, or in the last minute if those were more. */
static double deadline_load(void)
{
    double minute = 0, now = 0;
    for (int i = 0; i < LOAD_LOOKS; i++) {
        int running = 0;
        FILE *file = fopen("/proc/loadavg", "re");
        if (!file || fscanf(file, "%lf %*f %*f %d", &minute, &running) != 2)
            running = 0;
        if (file)
            fclose(file);
        now += (double)running / LOAD_LOOKS;
        deadline_nap();
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return (now > minute ? now : minute) / (double)(cores > 0 ? cores : 1);
}

/*
 * A quarter of what is beyond the usual, for a thread that wakes goes before those that have run
 * for long. A sanitizer's factor is multiplied by it. Before the constructors that ask for times;
 * the processes of the tests inherit it, so that all times of one program are stretched alike.
 */
__attribute__((constructor(101))) static void deadline_stretch(void)
{
    const char *given = getenv("HL_TEST_SLOWDOWN");
    double factor = given && strtod(given, NULL) > 0 ? strtod(given, NULL) : 1;
    char text[16];
    if (getenv("HL_TEST_STRETCHED"))
        return;
    double load = deadline_load();
    if (load > LOAD_MAX)
        load = LOAD_MAX;
    if (load > LOAD_USUAL)
        factor *= 1 + (load - LOAD_USUAL) / 4;
    snprintf(text, sizeof text, "%.1f", factor);
    setenv("HL_TEST_SLOWDOWN", text, 1);
    setenv("HL_TEST_STRETCHED", "by the load", 1);
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

struct deadline deadline_in(int64_t ms)
{
    return (struct deadline){.at_ns = now_ns() + slow_ms(ms) * 1000000};
}

struct deadline deadline_of_wait(int64_t ms)
{
    return deadline_in(ms < 1000 ? ms : ms + DEADLINE_HANG_MS);
}

bool deadline_is_over(struct deadline deadline)
{
    return now_ns() >= deadline.at_ns;
}

int64_t deadline_left_ms(struct deadline deadline)
{
    int64_t left_ns = deadline.at_ns - now_ns();
    return left_ns > 0 ? (left_ns + 999999) / 1000000 : 0;
}

void deadline_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
