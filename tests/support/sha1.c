/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* FIPS 180-4, one block at a time. */
#include "sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t sha1_rotate(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

static uint32_t sha1_mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t mixed = b ^ c ^ d;
    if (round < 20)
        mixed = (b & c) | (~b & d);
    else if (round >= 40 && round < 60)
        mixed = (b & c) | (b & d) | (c & d);
    return mixed + constants[round / 20];
}

static void sha1_block(uint32_t hash[5], const uint8_t block[64])
{
    uint32_t w[80], v[5];
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 80; i++)
        w[i] = sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(v, hash, sizeof v);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next = sha1_rotate(v[0], 5) + sha1_mix(i, v[1], v[2], v[3]) + v[4] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = sha1_rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        hash[i] += v[i];
}

void sha1_hex(const void *bytes, size_t length, char ret_hex[41])
{
    uint32_t hash[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t tail[128] = {0};
    size_t whole = length / 64 * 64, rest = length - whole;
    size_t tail_length = rest < 56 ? 64 : 128;
    for (size_t at = 0; at < whole; at += 64)
        sha1_block(hash, (const uint8_t *)bytes + at);
    memcpy(tail, (const uint8_t *)bytes + whole, rest);
    tail[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[tail_length - 1 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
    for (size_t at = 0; at < tail_length; at += 64)
        sha1_block(hash, tail + at);
    snprintf(ret_hex, 41, "%08x%08x%08x%08x%08x", hash[0], hash[1], hash[2], hash[3], hash[4]);
}
