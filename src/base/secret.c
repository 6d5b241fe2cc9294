/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Secrets, each in a mapping of its own: madvise() works on pages, and a page of malloc() has
 * neighbours that belong into a core dump. */
#include "base/secret.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

struct secret {
    size_t size; /* of the mapping */
    char text[];
};

char *hli_secret_new(size_t length)
{
    if (length > SIZE_MAX / 2)
        return NULL;
    size_t size = sizeof(struct secret) + length + 1;
    struct secret *secret =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (secret == MAP_FAILED)
        return NULL;
    madvise(secret, size, MADV_DONTDUMP); /* a kernel that refuses it dumps the page */
    secret->size = size;
    return secret->text;
}

char *hli_secret_copy(const char *text)
{
    char *copy = hli_secret_new(strlen(text));

    if (copy)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

void hli_secret_free(char *text)
{
    if (!text)
        return;
    struct secret *secret = (struct secret *)(void *)(text - offsetof(struct secret, text));
    size_t size = secret->size;
    explicit_bzero(secret, size);
    munmap(secret, size);
}
