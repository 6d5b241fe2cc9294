/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Acquire-all of several clients: in which order it takes its members, and when it gives way.
 *
 * All callers of all processes share the strict order: by slot, by the bytes of the name, and by
 * the server's run id. A call that waits holds only members before the one that it waits for. Until
 * a member is busy the call asks for all members of one client together instead, as then each
 * client is asked once.
 *
 * A tie: members of the same slot and name, at different servers. Two callers may take these in
 * different orders, as a server has another run id after a restart or a failover.
 */
#include "base/random.h"
#include "lease/several/acquire_all.h"

#include <string.h>

static const hl_client *acquire_all_client(const struct hli_acquire_all *all, size_t index)
{
    return all->members[index].acquire.name->client;
}

static uint64_t acquire_all_server(const struct hli_member *member)
{
    return hli_link_server(hli_name_link(member->acquire.name));
}

static bool acquire_all_are_tied(const struct hli_member *one, const struct hli_member *other)
{
    const struct hli_name *name = one->acquire.name, *others = other->acquire.name;

    return name->client != others->client && name->slot == others->slot &&
           name->length == others->length && memcmp(name->bytes, others->bytes, name->length) == 0;
}

/* Moves the last of so many members forward to its place in its tie. */
static void acquire_all_place_last(struct hli_acquire_all *all, size_t count)
{
    size_t place = count - 1;
    struct hli_member *last = all->at[place];
    uint64_t server = acquire_all_server(last);

    while (place > 0 && acquire_all_are_tied(all->at[place - 1], last) &&
           acquire_all_server(all->at[place - 1]) > server) {
        all->at[place] = all->at[place - 1];
        place--;
    }
    all->at[place] = last;
}

void hli_acquire_all_be_strict(struct hli_acquire_all *all)
{
    all->is_strict = true;
    all->next = 0;
    all->batch_end = all->count; /* what a batch has taken may stand anywhere now */
    for (size_t i = 0; i < all->count; i++) {
        all->at[i] = &all->members[i];
        acquire_all_place_last(all, i + 1);
    }
}

/* Is this member behind one of its own client, with another client's between them? */
static bool acquire_all_is_apart(const struct hli_acquire_all *all, size_t index)
{
    const hl_client *client = acquire_all_client(all, index);

    if (index == 0 || acquire_all_client(all, index - 1) == client)
        return false;
    for (size_t i = 0; i < index; i++)
        if (acquire_all_client(all, i) == client)
            return true;
    return false;
}

/* Are there fewer requests if the members of one client go together? They cannot if one does not
 * ask in a batch: it waits where it is busy, whatever the call holds. */
static bool acquire_all_gains(const struct hli_acquire_all *all)
{
    bool gains = false;

    for (size_t i = 0; i < all->count; i++) {
        const struct hli_member *member = &all->members[i];
        if (!member->is_nested && !hli_member_may_share(member))
            return false;
        gains = gains || acquire_all_is_apart(all, i);
    }
    return gains;
}

/* Does this member follow one of the same client at once? Those that the owner holds do not: they
 * stay behind all others. */
static bool acquire_all_follows(const struct hli_acquire_all *all, size_t first, size_t index)
{
    return index == first || (!all->members[first].is_nested && !all->members[index].is_nested &&
                              acquire_all_client(all, first) == acquire_all_client(all, index));
}

/* From the strict order: the members of one client together. */
static void acquire_all_gather(struct hli_acquire_all *all)
{
    bool is_in[HLI_SEVERAL_LIMIT] = {false};
    size_t used = 0;

    all->is_strict = false;
    for (size_t first = 0; first < all->count; first++)
        for (size_t i = first; !is_in[first] && i < all->count; i++) {
            if (!acquire_all_follows(all, first, i))
                continue;
            all->at[used++] = &all->members[i];
            is_in[i] = i != first;
        }
}

void hli_acquire_all_begin_span(struct hli_acquire_all *all)
{
    all->tied = NULL;
    hli_acquire_all_be_strict(all);
    if (!all->alone && acquire_all_gains(all))
        acquire_all_gather(all);
    hli_span_keep(all->span);
}

bool hli_acquire_all_has_twin(struct hli_acquire_all *all, const struct hli_member *member)
{
    for (size_t i = 0; i < all->count; i++) {
        if (!hli_member_is_twin_of(member, &all->members[i]))
            continue;
        all->stop_code =
            hli_name_refuse(all->wait.err, HL_EDEADLK, member->acquire.name, HL_CALL_ACQUIRE,
                            "it is a member twice, by two clients of one server");
        return true;
    }
    return false;
}

static void acquire_all_on_patience_orphaned(void *arg)
{
    struct hli_acquire_all *all = arg;

    hli_async_unref(&all->async); /* the timer's */
}

static void acquire_all_on_patience(void *arg)
{
    hli_acquire_all_kick(arg);
    acquire_all_on_patience_orphaned(arg);
}

enum { ACQUIRE_ALL_PATIENCE_MS = 32, ACQUIRE_ALL_PATIENCE_MOST_MS = 128 };

/* So long does a call hold other members of a tie while it waits for one. The time is random: of
 * two callers that hold what the other one waits for, one gives way while the other still waits.
 * It grows, as the answers of a server that is far away take their time. */
static void acquire_all_be_patient(struct hli_acquire_all *all, const struct hli_member *member)
{
    if (all->patience_ms == 0) {
        all->patience = (struct hli_timer){.run = acquire_all_on_patience,
                                           .orphaned = acquire_all_on_patience_orphaned,
                                           .arg = all};
        all->patience_ms = ACQUIRE_ALL_PATIENCE_MS;
    } else if (all->patience_ms < ACQUIRE_ALL_PATIENCE_MOST_MS) {
        all->patience_ms *= 2;
    }
    all->tied = member;
    all->patient_until =
        hli_after_ms(hli_now(), all->patience_ms + hli_random_upto(all->patience_ms));
    hli_async_ref(&all->async); /* the timer's */
    if (!hli_timer_set(all->wait.client->loop, &all->patience, all->patient_until))
        hli_async_unref(&all->async);
}

/* Gives back what it holds of the tie, from this place on. The member that it waits for comes
 * first then, and keeps its place in the queue. */
static void acquire_all_give_way(struct hli_acquire_all *all, size_t first)
{
    struct hli_member *awaited = all->at[all->next];

    all->tied = NULL;
    if (hli_acquire_all_has_twin(all, awaited)) {
        hli_acquire_all_stop(all);
        return;
    }
    hli_acquire_all_give_back(all, first, all->next);
    memmove(&all->at[first + 1], &all->at[first], (all->next - first) * sizeof(all->at[0]));
    all->at[first] = awaited;
    all->next = first;
}

void hli_acquire_all_mind_tie(struct hli_acquire_all *all)
{
    const struct hli_member *awaited = all->at[all->next];
    size_t first = all->next;

    while (all->is_strict && !awaited->is_nested && first > 0 &&
           acquire_all_are_tied(all->at[first - 1], awaited))
        first--;
    if (first == all->next)
        all->tied = NULL;
    else if (all->tied != awaited)
        acquire_all_be_patient(all, awaited);
    else if (hli_now() >= all->patient_until)
        acquire_all_give_way(all, first);
}
