/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Deadlocks: the list of announced calls, and the search for a circle.
 *
 * The search visits one name after the other, while others go on. It is right nevertheless: a
 * thread that blocks releases nothing, so what the search sees of a call has been so since the call
 * was announced, if the call is still announced at the end. A multi-lock may get further members
 * meanwhile, which does no harm: a call is first seen in a line, and then the name's holder is, and
 * a multi-lock takes nothing behind a member that is busy.
 */
#include "lease/acquire/deadlock.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLOCK_TEXT = 240, DEADLOCK_NAME = 32 };

static hli_mutex blocked_mutex = HLI_MUTEX_INIT; /* guards the list */
static TAILQ_HEAD(blocked_list, hli_blocked) blocked_list = TAILQ_HEAD_INITIALIZER(blocked_list);
static size_t blocked_count;
static uint64_t blocked_serials;

/* One announced call of a search, with references. */
struct deadlock_call {
    struct hl_owner *owner;
    struct hli_name *name;
    uint64_t serial;
    size_t waiter; /* the call before it on the way: it waits for what this one's owner holds */
    bool is_met;
};

/* The first call is the one that searches; the others were announced before it. */
struct deadlock_search {
    struct deadlock_call *calls;
    size_t count;
    size_t *queue; /* of calls that are met; their own holders are still to be met */
    size_t queued;
    size_t last; /* the call whose name the first call's owner holds; 0: none is found */
};

/* Can a wait for this name be part of a circle? */
static bool blocked_counts(const struct hli_acquire *acquire)
{
    const struct hli_kind *kind = acquire->name->kind;

    return !acquire->owner->client && !acquire->is_try && (kind->is_tagged || kind->sibling) &&
           !(acquire->name->client->settings.flags & HL_CLIENT_NO_DEADLOCK_CHECK);
}

/* Returns how many were announced before. */
static size_t blocked_announce(struct hli_blocked *blocked, struct hli_acquire *acquire)
{
    blocked->acquire = acquire;
    hli_mutex_lock(&blocked_mutex);
    blocked->owner = acquire->owner;
    blocked->name = acquire->name;
    blocked->serial = ++blocked_serials;
    TAILQ_INSERT_TAIL(&blocked_list, blocked, link);
    size_t older = blocked_count++;
    hli_mutex_unlock(&blocked_mutex);
    return older;
}

void hli_blocked_end(struct hli_blocked *blocked)
{
    if (!blocked->acquire)
        return;
    blocked->acquire = NULL;
    hli_mutex_lock(&blocked_mutex);
    TAILQ_REMOVE(&blocked_list, blocked, link);
    blocked_count--;
    hli_mutex_unlock(&blocked_mutex);
}

void hli_blocked_forget_all(void)
{
    hli_mutex_init(&blocked_mutex);
    TAILQ_INIT(&blocked_list);
    blocked_count = 0;
}

static void search_add(struct deadlock_search *search, const struct hli_blocked *blocked)
{
    hli_owner_ref(blocked->owner);
    hli_name_ref(blocked->name);
    search->calls[search->count++] = (struct deadlock_call){
        .owner = blocked->owner, .name = blocked->name, .serial = blocked->serial};
}

static void search_deinit(struct deadlock_search *search)
{
    for (size_t i = 0; i < search->count; i++) {
        hli_owner_unref(search->calls[i].owner);
        hli_name_unref(search->calls[i].name);
    }
    free(search->calls);
    free(search->queue);
}

/* False when memory is out. */
static bool search_init(struct deadlock_search *search, const struct hli_blocked *first,
                        size_t older)
{
    const struct hli_blocked *blocked;

    *search = (struct deadlock_search){
        .calls = calloc(older + 1, sizeof(*search->calls)),
        .queue = calloc(older + 1, sizeof(*search->queue)),
    };
    if (!search->calls || !search->queue) {
        search_deinit(search);
        return false;
    }
    search_add(search, first);
    hli_mutex_lock(&blocked_mutex);
    TAILQ_FOREACH (blocked, &blocked_list, link) {
        if (blocked == first)
            break;
        search_add(search, blocked);
    }
    hli_mutex_unlock(&blocked_mutex);
    return true;
}

/* The owner that surely holds this name now, until it releases it; to be compared only. NULL: none
 * of this process, or the hold ends by itself. */
static const struct hl_owner *deadlock_holder(struct hli_name *name)
{
    hli_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = name->current;
    bool holds = tenure && tenure->state == HLI_TENURE_OWN &&
                 hli_hold_is_valid(tenure, hli_now()) && tenure->hold.ends == HLI_NEVER &&
                 tenure->hold.max_hold_at == HLI_NEVER;
    const struct hl_owner *owner = holds ? tenure->hold.owner : NULL;
    hli_mutex_unlock(&name->mutex);
    return owner;
}

/* The same of this name with another kind. */
static const struct hl_owner *deadlock_holder_of(const struct hli_name *like,
                                                 const struct hli_kind *kind, uint64_t number)
{
    struct hli_name *name = hli_name_find(
        like->client, &(struct hli_name_key){.kind = kind,
                                             .bytes = like->bytes,
                                             .length = like->length,
                                             .owner_key = {{kind->is_per_owner ? number : 0}}});
    const struct hl_owner *owner = name ? deadlock_holder(name) : NULL;

    if (name)
        hli_name_unref(name);
    return owner;
}

/* Does the call still stand in its name's line? */
static bool call_waits(const struct deadlock_call *call)
{
    const struct hli_acquire *acquire;
    bool waits = false;

    hli_mutex_lock(&call->name->mutex);
    TAILQ_FOREACH (acquire, &call->name->waiters, link)
        waits = waits || acquire->owner == call->owner;
    hli_mutex_unlock(&call->name->mutex);
    return waits;
}

/* The owner of `holder` holds what `waiter` waits for. */
static void search_meet(struct deadlock_search *search, size_t waiter, size_t holder)
{
    struct deadlock_call *call = &search->calls[holder];

    if (holder == 0) {
        search->last = waiter;
    } else if (!call->is_met) {
        call->is_met = true;
        call->waiter = waiter;
        search->queue[search->queued++] = holder;
    }
}

/* Meets the calls whose owners hold this call's name with that kind. Readers do not wait for each
 * other. */
static void search_follow(struct deadlock_search *search, size_t waiter,
                          const struct hli_kind *kind)
{
    const struct hli_name *name = search->calls[waiter].name;
    const struct hl_owner *holder = NULL;

    if (!kind || !(kind->is_tagged || name->kind->is_tagged))
        return;
    for (size_t i = 0; i < search->count && search->last == 0; i++) {
        const struct hl_owner *owner = search->calls[i].owner;
        if (i == 0 || kind->is_per_owner)
            holder = deadlock_holder_of(name, kind, owner->number);
        if (!holder && !kind->is_per_owner)
            return;
        if (holder == owner && i != waiter)
            search_meet(search, waiter, i);
    }
}

/* Breadth first, so that the shortest circle is named. */
static void search_run(struct deadlock_search *search)
{
    search->queue[search->queued++] = 0;
    for (size_t next = 0; next < search->queued && search->last == 0; next++) {
        const struct deadlock_call *call = &search->calls[search->queue[next]];
        if (!call_waits(call))
            continue;
        search_follow(search, search->queue[next], call->name->kind);
        search_follow(search, search->queue[next], call->name->kind->sibling);
    }
}

static bool blocked_is_listed(uint64_t serial)
{
    const struct hli_blocked *blocked;

    TAILQ_FOREACH (blocked, &blocked_list, link)
        if (blocked->serial == serial)
            return true;
    return false;
}

/* Are all calls of the circle still announced? */
static bool search_is_true(const struct deadlock_search *search)
{
    bool is_true = search->last != 0;

    hli_mutex_lock(&blocked_mutex);
    for (size_t i = search->last; i != 0; i = search->calls[i].waiter)
        is_true = is_true && blocked_is_listed(search->calls[i].serial);
    hli_mutex_unlock(&blocked_mutex);
    return is_true;
}

/* How much of an error's text is left behind "acquire 'name': ". */
static size_t search_room(const struct deadlock_search *search)
{
    const struct hli_name *name = search->calls[0].name;
    char shown[96];

    hli_error_escape(shown, sizeof(shown), name->bytes, name->length);
    return sizeof(((hl_error *)NULL)->text) - sizeof("acquire '': ") - strlen(shown);
}

/* "its owner waits for 'b', whose owner waits for 'c', which this owner holds"; in part, if it is
 * longer than an error's text. */
static void search_write(struct deadlock_search *search, char text[DEADLOCK_TEXT])
{
    static const char end[] = "which this owner holds", cut[] = "and so on, back to this owner";
    size_t room = search_room(search) - sizeof(cut), used = 0, length = 0, next;
    char shown[DEADLOCK_NAME], step[2 * DEADLOCK_NAME];

    for (size_t i = search->last; i != 0; i = search->calls[i].waiter)
        search->queue[length++] = i; /* from the last one to the first */
    for (next = length; next > 0; next--) {
        const struct hli_name *name = search->calls[search->queue[next - 1]].name;
        hli_error_escape(shown, sizeof(shown), name->bytes, name->length);
        int size = snprintf(step, sizeof(step), "%s owner waits for '%s', ",
                            next == length ? "its" : "whose", shown);
        if (used + (size_t)size > room)
            break;
        memcpy(text + used, step, (size_t)size);
        used += (size_t)size;
    }
    snprintf(text + used, DEADLOCK_TEXT - used, "%s", next == 0 ? end : cut);
}

static void blocked_refuse(struct hli_acquire *acquire, const char *text)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, acquire->name);
    if (acquire->is_waiting)
        hli_waiters_fail(&turn, acquire, HL_EDEADLK, text);
    hli_turn_end(&turn);
}

void hli_blocked_begin(struct hli_blocked *blocked, struct hli_acquire *acquire)
{
    struct deadlock_search search;
    char text[DEADLOCK_TEXT];

    if (blocked->acquire == acquire || !blocked_counts(acquire))
        return;
    hli_blocked_end(blocked);
    size_t older = blocked_announce(blocked, acquire);
    if (older == 0 || !search_init(&search, blocked, older))
        return;
    search_run(&search);
    bool is_deadlock = search_is_true(&search);
    if (is_deadlock)
        search_write(&search, text);
    search_deinit(&search);
    if (is_deadlock)
        blocked_refuse(acquire, text);
}
