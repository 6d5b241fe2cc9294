/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

#include "ledger.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int64_t ledger_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

struct ledger *ledger_open(const char *path)
{
    void *ledger = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)sizeof(struct ledger)) == 0)
        ledger = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (fd >= 0)
        close(fd);
    return ledger == MAP_FAILED ? NULL : ledger;
}

void ledger_close(struct ledger *ledger)
{
    munmap(ledger, sizeof *ledger);
}

bool ledger_note_disturbance(struct ledger *ledger, const struct ledger_disturbance *disturbance)
{
    uint32_t index = atomic_fetch_add(&ledger->disturbances, 1);
    if (index < LEDGER_DISTURBANCES)
        ledger->disturbance[index] = *disturbance;
    return index < LEDGER_DISTURBANCES;
}
