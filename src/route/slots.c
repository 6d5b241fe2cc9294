/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Slots by CRC16, of the variant XMODEM. */
#include "route/slots.h"

#include <stdint.h>
#include <string.h>

enum { SLOTS_POLYNOMIAL = 0x1021 };

static unsigned slot_crc16(const unsigned char *bytes, size_t length)
{
    unsigned crc = 0;

    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1) ^ SLOTS_POLYNOMIAL : crc << 1;
    }
    return crc & 0xffff;
}

unsigned hli_slot_of(const void *key, size_t length)
{
    const unsigned char *bytes = key, *open = memchr(bytes, '{', length);

    if (open) {
        size_t left = length - (size_t)(open + 1 - bytes);
        const unsigned char *close = memchr(open + 1, '}', left);
        if (close && close > open + 1)
            return slot_crc16(open + 1, (size_t)(close - open - 1)) % HLI_SLOTS;
    }
    return slot_crc16(bytes, length) % HLI_SLOTS;
}
