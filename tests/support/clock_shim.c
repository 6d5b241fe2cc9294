/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A shared library for LD_PRELOAD into redis-server: its wall clock is shifted by a number of
 * milliseconds that the test keeps in a mapped file (HL_CLOCK_SHIM_FILE). CLOCK_MONOTONIC stays.
 * Build it without sanitizers: it runs inside a program that has none.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *clock_shim_offset_ms;

__attribute__((constructor)) static void clock_shim_map(void)
{
    const char *path = getenv("HL_CLOCK_SHIM_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        clock_shim_offset_ms = page;
}

/* By system call, not dlsym(): the allocator may ask for the time before symbols can be looked up.
 */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (result != 0 || !clock_shim_offset_ms)
        return result;
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return result;
    int64_t offset_ms = atomic_load(clock_shim_offset_ms);
    ret_time->tv_sec += offset_ms / 1000;
    ret_time->tv_nsec += offset_ms % 1000 * 1000000;
    if (ret_time->tv_nsec >= 1000000000) {
        ret_time->tv_sec++;
        ret_time->tv_nsec -= 1000000000;
    } else if (ret_time->tv_nsec < 0) {
        ret_time->tv_sec--;
        ret_time->tv_nsec += 1000000000;
    }
    return 0;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_seconds)
        *ret_seconds = now.tv_sec;
    return now.tv_sec;
}
