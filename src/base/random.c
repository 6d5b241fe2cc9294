/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Randomness from getrandom(2), which blocks only before the kernel is seeded; there is no weaker
 * fallback. */
#include "base/random.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>

/* The kernel gives up to 256 bytes at once or, before it is seeded, none with EINTR. */
static void random_bytes(void *bytes, size_t length)
{
    while (getrandom(bytes, length, 0) < 0)
        ;
}

uint64_t hli_random_u64(void)
{
    uint64_t value;

    random_bytes(&value, sizeof(value));
    return value;
}

int64_t hli_random_upto(int64_t limit)
{
    return limit <= 0 ? 0 : (int64_t)(hli_random_u64() % ((uint64_t)limit + 1));
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
