/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Structs with a size in front. */
#include "base/versioned.h"

#include "base/error.h"

#include <stdbool.h>

#include <string.h>

enum { VERSIONED_LIMIT = 4096 };

/* True if the size is valid, and all bytes beyond the known ones are zero. */
static bool versioned_is_known(size_t size, size_t known, const unsigned char *bytes)
{
    if (size < sizeof(size) || size > VERSIONED_LIMIT)
        return false;
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

int hli_versioned_read(void *ret, size_t known, const void *passed, const char *what, hl_error *err)
{
    size_t size;

    if (!passed)
        return 0;
    memcpy(&size, passed, sizeof(size));
    if (!versioned_is_known(size, known, passed))
        return hli_fail(err, HL_EINVAL,
                        "%s: size is not set, or a field is set that this version does not know",
                        what);
    memcpy(ret, passed, size < known ? size : known);
    memcpy(ret, &known, sizeof(known));
    return 0;
}

void hli_versioned_write(void *to, size_t known, const void *result)
{
    size_t size;

    memcpy(&size, to, sizeof(size));
    memcpy(to, result, size < known ? size : known);
    memcpy(to, &size, sizeof(size));
}
