/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Who is answered busy by a field of its own client's that no tenure of the name knows has met a
 * ghost, or a hold of the same name as another kind of lock: of a fair lock, say. So the loop asks
 * all names of the client first, and releases it only if none knows it.
 */
#include "lease/ghost.h"

#include "lease/busy.h"
#include "lease/contest.h"
#include "lease/release.h"

#include <stdlib.h>
#include <string.h>

struct ghost_hunt {
    struct hli_task task;
    struct hli_name *name; /* counted */
    uint64_t number;
    bool is_known;
};

static void ghost_ask(struct hli_name *name, void *arg)
{
    struct ghost_hunt *hunt = arg;

    if (name->length != hunt->name->length ||
        memcmp(name->bytes, hunt->name->bytes, name->length) != 0)
        return;
    pthread_mutex_lock(&name->mutex);
    hunt->is_known = hunt->is_known || hli_name_tenure(name, hunt->number);
    pthread_mutex_unlock(&name->mutex);
}

static void ghost_free(struct ghost_hunt *hunt)
{
    hli_name_unref(hunt->name);
    free(hunt);
}

static void ghost_run(void *arg)
{
    struct ghost_hunt *hunt = arg;
    struct hli_turn turn;

    hli_names_visit(hunt->name->client, ghost_ask, hunt);
    if (!hunt->is_known) {
        hli_turn_begin(&turn, hunt->name);
        if (!hli_name_tenure(hunt->name, hunt->number))
            hli_release_ghost(&turn, hunt->number);
        hli_turn_end(&turn);
    }
    ghost_free(hunt);
}

/* One that rests is left alone; so is one that we would have written otherwise, for its release
 * would find nothing; and where each owner has a name of his own, it may be another one's. Without
 * memory it is met again with the next busy answer. */
void hli_ghost_look(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    uint64_t number = hli_busy_own_number(name);

    if (number == 0 || name->kind->is_per_owner || name->contest->busy.count == 0 ||
        hli_name_tenure(name, number))
        return;
    struct ghost_hunt *hunt = malloc(sizeof(*hunt));
    if (!hunt)
        return;
    *hunt = (struct ghost_hunt){.name = name, .number = number};
    hunt->task = (struct hli_task){.run = ghost_run, .arg = hunt};
    hli_name_ref(name);
    if (!hli_loop_post(name->client->loop, &hunt->task))
        ghost_free(hunt);
}
