/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Makes a handle of a lock of each kind in one line: sets the kind and the name in the options. */
#ifndef HL_TEST_KINDS_H
#define HL_TEST_KINDS_H

#include <hirelock/hirelock.h>

static inline int lock_new_of(hl_client *client, hl_lock_options named,
                              const hl_lock_options *options, hl_lock **ret_lock, hl_error *err)
{
    hl_lock_options all = HL_LOCK_OPTIONS_INIT;

    if (options)
        all = *options;
    all.kind = named.kind;
    all.name = named.name;
    if (named.name_length > 0)
        all.name_length = named.name_length;
    return hl_lock_new_with(client, &all, ret_lock, err);
}

#define LOCK_NAMED(kind_, name_) ((hl_lock_options){.kind = (kind_), .name = (name_)})

#define lock_new_with(client, name, ...)                                                           \
    lock_new_of((client), LOCK_NAMED(HL_LOCK_REENTRANT, (name)), __VA_ARGS__)
#define fair_lock_new(client, name, ...)                                                           \
    lock_new_of((client), LOCK_NAMED(HL_LOCK_FAIR, (name)), __VA_ARGS__)
#define fenced_lock_new(client, name, ...)                                                         \
    lock_new_of((client), LOCK_NAMED(HL_LOCK_FENCED, (name)), __VA_ARGS__)
#define spin_lock_new(client, name, ...)                                                           \
    lock_new_of((client), LOCK_NAMED(HL_LOCK_SPIN, (name)), __VA_ARGS__)

static inline int lock_new_bytes(hl_client *client, const void *name, size_t length,
                                 hl_lock **ret_lock, hl_error *err)
{
    const hl_lock_options named = {.name = name, .name_length = length};

    return lock_new_of(client, named, NULL, ret_lock, err);
}

/* Makes both halves; flags that exist only for writers go to the write half. */
static inline int rw_lock_new_of(hl_client *client, const char *name,
                                 const hl_lock_options *options, hl_lock *ret_halves[2],
                                 hl_error *err)
{
    hl_lock_options reads = HL_LOCK_OPTIONS_INIT;

    if (options)
        reads = *options;
    reads.flags &= ~(unsigned)HL_LOCK_PREFER_WRITERS;
    int rc = lock_new_of(client, LOCK_NAMED(HL_LOCK_READ, name), &reads, &ret_halves[0], err);
    if (rc < 0)
        return rc;
    rc = lock_new_of(client, LOCK_NAMED(HL_LOCK_WRITE, name), options, &ret_halves[1], err);
    if (rc < 0)
        hl_lock_free(ret_halves[0]);
    return rc;
}

/* NOLINTNEXTLINE(readability-function-size): one call for both, as they are used */
static inline int rw_lock_new(hl_client *client, const char *name, const hl_lock_options *options,
                              hl_lock **ret_read, hl_lock **ret_write, hl_error *err)
{
    hl_lock *halves[2] = {NULL, NULL};
    int rc = rw_lock_new_of(client, name, options, halves, err);

    if (rc == 0) {
        *ret_read = halves[0];
        *ret_write = halves[1];
    }
    return rc;
}

#endif
