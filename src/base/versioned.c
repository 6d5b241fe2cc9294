/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Structs with a size in front. */
#include "base/versioned.h"

#include <string.h>

enum { VERSIONED_LIMIT = 4096 };

bool hli_versioned_read(void *ret, size_t known, const void *passed)
{
    const unsigned char *bytes = passed;
    size_t size;

    memcpy(&size, passed, sizeof(size));
    if (size < sizeof(size) || size > VERSIONED_LIMIT)
        return false;
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return false;
    memcpy(ret, passed, size < known ? size : known);
    memcpy(ret, &known, sizeof(known));
    return true;
}
