/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Randomness from getrandom(2), which blocks only before the kernel is seeded; there is no weaker
 * fallback. */
#include "base/random.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>

static void random_bytes(void *bytes, size_t length)
{
    char *at = bytes;

    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0)
            continue; /* EINTR is its only error for a valid buffer */
        at += got;
        length -= (size_t)got;
    }
}

uint64_t hli_random_u64(void)
{
    uint64_t value;

    random_bytes(&value, sizeof(value));
    return value;
}

/* SplitMix64 (G. Steele, D. Lea, C. Flood, 2014), for jitter: a system call for each wait would
 * cost more than the rest of it. */
static uint64_t random_next(void)
{
    static _Thread_local uint64_t state;

    if (state == 0)
        state = hli_random_u64();
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t hli_random_upto(int64_t limit)
{
    return limit <= 0 ? 0 : (int64_t)(random_next() % ((uint64_t)limit + 1));
}

void hli_random_uuid(char text[HLI_UUID_LENGTH + 1])
{
    unsigned char b[16];

    random_bytes(b, sizeof(b));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, HLI_UUID_LENGTH + 1,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}
