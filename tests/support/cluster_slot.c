/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* CRC-16/XMODEM, bit by bit. A tag for a slot is found by trying numbers: about 16,000 of them. */
#include "cluster_slot.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int cluster_crc16(const char *bytes, size_t length)
{
    enum { POLYNOMIAL = 0x1021 };
    uint16_t crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (uint16_t)((unsigned char)bytes[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1);
    }
    return crc;
}

int cluster_slot(const char *name, size_t length)
{
    const char *end = name + length;
    const char *open = memchr(name, '{', length);
    const char *close = open ? memchr(open + 1, '}', (size_t)(end - open - 1)) : NULL;
    if (close && close > open + 1)
        return cluster_crc16(open + 1, (size_t)(close - open - 1)) % CLUSTER_SLOTS;
    return cluster_crc16(name, length) % CLUSTER_SLOTS;
}

const char *cluster_name_in_slot(int slot, const char *prefix)
{
    static _Thread_local char names[8][128];
    static _Thread_local unsigned turn;
    char tag[16];
    int number = 0;
    do
        snprintf(tag, sizeof tag, "%d", number++);
    while (cluster_slot(tag, strlen(tag)) != slot);
    char *name = names[turn++ % 8];
    snprintf(name, sizeof names[0], "%s{%s}", prefix, tag);
    return name;
}
