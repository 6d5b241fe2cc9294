/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What the tests of lanes share: threads that meet at a client until it has opened so many. */
#ifndef HL_TEST_LANES_KIT_H
#define HL_TEST_LANES_KIT_H

#include "support/actor.h"
#include "support/events.h"
#include "support/kit.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { CROWD = 8 };

/* Threads that acquire and release a lock each, without a pause. They end before the client is
 * closed, also when the test fails; so it is static. */
struct crowd_of_threads {
    pthread_t thread[CROWD];
    hl_lock *lock[CROWD];
    atomic_bool is_over;
    atomic_int next, pairs;
    atomic_bool is_calm; /* with pauses, so that Sentinels get a core */
    bool may_fail;       /* a server is out of reach now and then */
};

static inline void *crowd_work(void *arg)
{
    struct crowd_of_threads *crowd = arg;
    hl_lock *lock = crowd->lock[atomic_fetch_add(&crowd->next, 1)];

    while (!atomic_load(&crowd->is_over)) {
        hl_error err = HL_ERROR_INIT;
        int code = hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(60000)), &err);
        check_msg(code == HL_OK || crowd->may_fail, "acquire: %s", err.text);
        if (code == HL_OK) {
            code = hl_lock_release(lock, &err);
            check_msg(code == HL_OK || crowd->may_fail, "release: %s", err.text);
        }
        atomic_fetch_add(&crowd->pairs, 1);
        if (atomic_load(&crowd->is_calm))
            poll(NULL, 0, 10);
    }
    return NULL;
}

static inline void crowd_end(void *arg)
{
    struct crowd_of_threads *crowd = arg;

    atomic_store(&crowd->is_over, true);
    for (int i = 0; i < CROWD && crowd->lock[i]; i++)
        pthread_join(crowd->thread[i], NULL);
    for (int i = 0; i < CROWD; i++) {
        hl_lock_free(crowd->lock[i]);
        crowd->lock[i] = NULL;
    }
}

/* name: of the lock of each, "stock-%d". */
static inline void crowd_begin(struct crowd_of_threads *crowd, hl_client *client, const char *name)
{
    char text[64];

    atomic_store(&crowd->is_over, false);
    atomic_store(&crowd->next, 0);
    for (int i = 0; i < CROWD; i++) {
        snprintf(text, sizeof text, "%s-%d", name, i);
        expect_ok(hl_lock_new(client, text, &crowd->lock[i], ERR));
    }
    free_at_end(crowd, crowd_end);
    for (int i = 0; i < CROWD; i++)
        check_int(pthread_create(&crowd->thread[i], NULL, crowd_work, crowd), 0);
}

struct lanes_seen {
    hl_client *client;
    const char *address; /* of the node; NULL: of the only one */
    hl_lock *lock;       /* that a thread works with meanwhile; or NULL */
    unsigned lanes;
    bool is_connected;
};

static inline void lanes_note(const hl_node *node, void *arg)
{
    struct lanes_seen *seen = arg;

    if (node->role == HL_NODE_SENTINEL || (seen->address && strcmp(node->address, seen->address)))
        return;
    seen->lanes = node->lanes;
    seen->is_connected = node->is_connected;
}

static inline unsigned lanes_of(hl_client *client, const char *address)
{
    struct lanes_seen seen = {.address = address};

    check(hl_client_nodes(client, lanes_note, &seen) > 0);
    return seen.lanes;
}

static inline bool lanes_are_reached(void *arg)
{
    const struct lanes_seen *wanted = arg;

    return lanes_of(wanted->client, wanted->address) == wanted->lanes;
}

/* While a crowd is at work. */
static inline void expect_lanes(hl_client *client, const char *address, unsigned lanes)
{
    struct lanes_seen wanted = {.client = client, .address = address, .lanes = lanes};

    check_msg(wait_until(lanes_are_reached, &wanted, 60000), "%u lanes, not %u",
              lanes_of(client, address), lanes);
}

/* Until there are so many. */
static inline void open_lanes(hl_client *client, unsigned lanes)
{
    static struct crowd_of_threads crowd;

    crowd_begin(&crowd, client, "crowd");
    expect_lanes(client, NULL, lanes);
    crowd_end(&crowd);
}

#endif
