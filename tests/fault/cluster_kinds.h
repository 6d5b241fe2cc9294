/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Each primitive of which only one owner has something at a time, as a thing that is taken and
 * given back. */
#ifndef HL_TEST_CLUSTER_KINDS_H
#define HL_TEST_CLUSTER_KINDS_H

#include "support/kinds.h"
#include "support/kit.h"

enum kind { LOCK, FAIR, FENCED, SPIN, MULTI, READER, WRITER, SEMAPHORE, PERMITS, KINDS };

static const char *const kind_names[KINDS] = {
    [LOCK] = "lock", [FAIR] = "fair",           [FENCED] = "fenced",
    [SPIN] = "spin", [MULTI] = "multi",         [READER] = "rw",
    [WRITER] = "rw", [SEMAPHORE] = "semaphore", [PERMITS] = "permits"};

struct thing {
    enum kind kind;
    hl_lock *lock;
    hl_semaphore *semaphore;
    hl_permits *permits;
    hl_permit permit;
};

static inline void thing_take(struct thing *thing)
{
    if (thing->kind == SEMAPHORE)
        expect_ok(hl_semaphore_acquire(thing->semaphore, 1, ERR));
    else if (thing->kind == PERMITS)
        expect_ok(hl_permits_acquire(thing->permits, &thing->permit, ERR));
    else
        expect_ok(hl_lock_acquire(thing->lock, ERR));
}

static inline void thing_give_back(struct thing *thing)
{
    if (thing->kind == SEMAPHORE)
        expect_ok(hl_semaphore_release(thing->semaphore, 1, ERR));
    else if (thing->kind == PERMITS)
        expect_ok(hl_permits_release(thing->permits, &thing->permit, ERR));
    else
        expect_ok(hl_lock_release(thing->lock, ERR));
}

/* There is one permit; the first thing of this name makes it. */
static inline void thing_make_counted(struct thing *thing, hl_client *client, const char *name)
{
    int code = HL_OK;

    if (thing->kind == SEMAPHORE) {
        expect_ok(hl_semaphore_new(client, name, &thing->semaphore, ERR));
        free_at_end(thing->semaphore, (void (*)(void *))hl_semaphore_free);
        code = hl_semaphore_try_set_permits(thing->semaphore, 1, 0, ERR);
    } else {
        expect_ok(hl_permits_new(client, name, &thing->permits, ERR));
        free_at_end(thing->permits, (void (*)(void *))hl_permits_free);
        code = hl_permits_try_set_total(thing->permits, 1, 0, ERR);
    }
    check(code == HL_OK || code == HL_EEXIST);
}

/* Of the name and of another name in its slot. */
static inline hl_lock *thing_new_multi(hl_client *client, const char *name)
{
    char second[64];
    hl_lock *members[2] = {new_lock(client, name), NULL}, *both = NULL;

    snprintf(second, sizeof second, "second.%s", name);
    members[1] = new_lock(client, second);
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, ERR));
    return both;
}

static inline struct thing thing_make(hl_client *client, enum kind kind, const char *name)
{
    static const hl_lock_kind kinds[] = {
        [LOCK] = HL_LOCK_REENTRANT, [FAIR] = HL_LOCK_FAIR,   [FENCED] = HL_LOCK_FENCED,
        [SPIN] = HL_LOCK_SPIN,      [READER] = HL_LOCK_READ, [WRITER] = HL_LOCK_WRITE};
    struct thing thing = {.kind = kind};

    if (kind >= SEMAPHORE) {
        thing_make_counted(&thing, client, name);
        return thing;
    }
    if (kind == MULTI)
        thing.lock = thing_new_multi(client, name);
    else
        expect_ok(lock_new_of(client, LOCK_NAMED(kinds[kind], name), NULL, &thing.lock, ERR));
    keep_lock(thing.lock);
    return thing;
}

#endif
