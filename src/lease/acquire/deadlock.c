/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Deadlocks: the list of announced calls, and the search for a circle.
 *
 * The search walks from a name to the owner that holds it, and to that owner's announced call: as
 * many steps as the circle is long. It visits one name after the other, while others go on. It is
 * right nevertheless: a thread that blocks releases nothing, so what the search sees of a call has
 * been so since the call was announced, if the call is still announced at the end. A multi-lock may
 * get further members meanwhile, which does no harm: a call is first seen in a line, and then the
 * name's holder is, and a multi-lock takes nothing behind a member that is busy.
 */
#include "lease/acquire/deadlock.h"

#include "base/error.h"
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLOCK_TEXT = 240, DEADLOCK_NAME = 32 };

static hli_mutex blocked_mutex = HLI_MUTEX_INIT; /* guards the list */
static TAILQ_HEAD(blocked_list, hli_blocked) blocked_list = TAILQ_HEAD_INITIALIZER(blocked_list);
static size_t blocked_count;
static uint64_t blocked_serials;

#ifdef HL_TESTING
atomic_uint hli_deadlock_asks;
#endif

/* One announced call of a search, with references. */
struct deadlock_call {
    STAILQ_ENTRY(deadlock_call) link; /* in the order in which they were met */
    struct hli_map_node node;         /* by the owner's number */
    struct hl_owner *owner;
    struct hli_name *name;
    uint64_t serial;
    struct deadlock_call *waiter; /* it waits for what this one's owner holds */
    struct deadlock_call *holder; /* of a circle's call: the next one on the way; NULL: the last */
};

struct deadlock_search {
    struct deadlock_call first; /* the call that searches; the others were announced before it */
    STAILQ_HEAD(, deadlock_call) calls;
    struct hli_map met;         /* of all but the first */
    struct deadlock_call *last; /* its name is held by the first one's owner; NULL: none is found */
    struct hl_owner **owners;   /* of all calls before the first, counted; NULL: not asked for */
    size_t older, owner_count;
};

/* Can a wait for this name be part of a circle? */
static bool blocked_counts(const struct hli_acquire *acquire)
{
    const struct hli_kind *kind = acquire->name->kind;

    return !acquire->owner->client && !acquire->is_try && hli_kind_is_of_threads(kind) &&
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
    blocked->owner->blocked = blocked;
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
    blocked->owner->blocked = NULL;
    blocked_count--;
    hli_mutex_unlock(&blocked_mutex);
}

void hli_blocked_forget_all(void)
{
    hli_mutex_init(&blocked_mutex);
    TAILQ_INIT(&blocked_list);
    blocked_count = 0;
}

/* What is announced of this owner, with references; false: nothing before that serial. */
static bool blocked_see(const struct hl_owner *owner, uint64_t before, struct deadlock_call *ret)
{
    hli_mutex_lock(&blocked_mutex);
    const struct hli_blocked *blocked = owner->blocked;
    bool is_seen = blocked && blocked->serial < before;
    if (is_seen) {
        hli_owner_ref(blocked->owner);
        hli_name_ref(blocked->name);
        *ret = (struct deadlock_call){
            .owner = blocked->owner, .name = blocked->name, .serial = blocked->serial};
    }
    hli_mutex_unlock(&blocked_mutex);
    return is_seen;
}

static void call_deinit(struct deadlock_call *call)
{
    hli_owner_unref(call->owner);
    hli_name_unref(call->name);
}

/* The map's keys are numbers of our own, so it needs no seed. */
static void search_init(struct deadlock_search *search, const struct hli_blocked *first,
                        size_t older)
{
    *search = (struct deadlock_search){
        .first = {.owner = first->owner, .name = first->name, .serial = first->serial},
        .older = older};
    hli_owner_ref(first->owner);
    hli_name_ref(first->name);
    STAILQ_INIT(&search->calls);
    STAILQ_INSERT_TAIL(&search->calls, &search->first, link);
}

static void search_deinit(struct deadlock_search *search)
{
    struct deadlock_call *call;

    STAILQ_REMOVE_HEAD(&search->calls, link);
    call_deinit(&search->first);
    while ((call = STAILQ_FIRST(&search->calls))) {
        STAILQ_REMOVE_HEAD(&search->calls, link);
        hli_map_remove(&search->met, &call->node);
        call_deinit(call);
        free(call);
    }
    hli_map_deinit(&search->met);
    for (size_t i = 0; i < search->owner_count; i++)
        hli_owner_unref(search->owners[i]);
    free(search->owners);
}

/* The owner that surely holds this name now, until it releases it; counted. NULL: none of this
 * process, or the hold ends by itself. `ret_is_alone`: of the names of all owners, this one alone
 * is held; the number of holds is read under the mutex, where it is sure to contain this one. */
static struct hl_owner *deadlock_holder(struct hli_name *name, bool *ret_is_alone)
{
    hli_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = name->current;
    bool holds = tenure && tenure->state == HLI_TENURE_OWN;
    *ret_is_alone = holds && name->shared && atomic_load(&name->shared->holds) == 1;
    bool is_sure = holds && hli_hold_is_valid(tenure, hli_now()) &&
                   tenure->hold.ends == HLI_NEVER && tenure->hold.max_hold_at == HLI_NEVER;
    struct hl_owner *owner = is_sure ? tenure->hold.owner : NULL;
    if (owner)
        hli_owner_ref(owner);
    hli_mutex_unlock(&name->mutex);
    return owner;
}

/* This name with another kind; with a reference, or NULL. */
static struct hli_name *deadlock_name(const struct hli_name *like, const struct hli_kind *kind,
                                      uint64_t number)
{
    return hli_name_find(like->client, &(struct hli_name_key){.kind = kind,
                                                              .bytes = like->bytes,
                                                              .length = like->length,
                                                              .owner_key = {{number}}});
}

/* Does the call still stand in its name's line? The youngest calls stand at its end. */
static bool call_waits(const struct deadlock_call *call)
{
    hli_mutex_lock(&call->name->mutex);
    const struct hli_acquire *acquire = TAILQ_LAST(&call->name->waiters, hli_acquires);
    while (acquire && acquire->owner != call->owner)
        acquire = TAILQ_PREV(acquire, hli_acquires, link);
    hli_mutex_unlock(&call->name->mutex);
    return acquire;
}

/* `owner` holds what `waiter` waits for. */
static void search_meet(struct deadlock_search *search, struct deadlock_call *waiter,
                        const struct hl_owner *owner)
{
    struct deadlock_call *call;

    if (owner == search->first.owner && waiter != &search->first)
        search->last = waiter;
    if (owner == search->first.owner || owner == waiter->owner ||
        hli_map_find(&search->met, &owner->number, sizeof(owner->number)))
        return;
    call = malloc(sizeof(*call));
    if (!call || !blocked_see(owner, search->first.serial, call)) {
        free(call);
        return;
    }
    call->waiter = waiter;
    if (hli_map_insert(&search->met, &call->node, &call->owner->number,
                       sizeof(call->owner->number)) == 0) {
        STAILQ_INSERT_TAIL(&search->calls, call, link);
    } else {
        call_deinit(call);
        free(call);
    }
}

/* Meets the owner that holds the name which this call waits for, of that kind and number. True:
 * of all owners, this one alone holds. */
static bool search_ask(struct deadlock_search *search, struct deadlock_call *waiter,
                       const struct hli_kind *kind, uint64_t number)
{
    bool is_alone = false;
    struct hli_name *name = deadlock_name(waiter->name, kind, number);

#ifdef HL_TESTING
    atomic_fetch_add(&hli_deadlock_asks, 1);
#endif
    if (!name)
        return false;
    struct hl_owner *owner = deadlock_holder(name, &is_alone);
    if (owner)
        search_meet(search, waiter, owner);
    hli_owner_unref(owner);
    hli_name_unref(name);
    return is_alone;
}

/* Lists the owners of all calls that were announced before; of none when memory is out. */
static void search_list_owners(struct deadlock_search *search)
{
    const struct hli_blocked *blocked;

    if (search->owners || !(search->owners = calloc(search->older, sizeof(struct hl_owner *))))
        return;
    hli_mutex_lock(&blocked_mutex);
    TAILQ_FOREACH (blocked, &blocked_list, link) {
        if (blocked->serial >= search->first.serial)
            break;
        hli_owner_ref(blocked->owner);
        search->owners[search->owner_count++] = blocked->owner;
    }
    hli_mutex_unlock(&blocked_mutex);
}

/* The same of a kind with a name for each owner. Mostly one owner holds, and it is the one whose
 * hold began last; else these are readers, and each blocked owner may be one. */
static void search_ask_owners(struct deadlock_search *search, struct deadlock_call *waiter,
                              const struct hli_kind *kind)
{
    struct hli_name *shared = deadlock_name(waiter->name, kind, 0);

    if (!shared)
        return;
    bool is_held = atomic_load(&shared->holds) > 0;
    uint64_t last = atomic_load(&shared->last_holder);
    hli_name_unref(shared);
    if (!is_held || search_ask(search, waiter, kind, last))
        return;
    search_list_owners(search);
    search_ask(search, waiter, kind, search->first.owner->number);
    for (size_t i = 0; i < search->owner_count && !search->last; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each was listed */
        search_ask(search, waiter, kind, search->owners[i]->number);
}

/* Meets the calls whose owners hold this call's name with that kind. Readers do not wait for each
 * other. */
static void search_follow(struct deadlock_search *search, struct deadlock_call *waiter,
                          const struct hli_kind *kind)
{
    if (!kind || !(kind->is_tagged || waiter->name->kind->is_tagged))
        return;
    if (kind->is_per_owner)
        search_ask_owners(search, waiter, kind);
    else
        search_ask(search, waiter, kind, 0);
}

/* Breadth first, so that the shortest circle is named. */
static void search_run(struct deadlock_search *search)
{
    struct deadlock_call *call;

    STAILQ_FOREACH (call, &search->calls, link) {
        if (search->last)
            break;
        if (!call_waits(call))
            continue;
        search_follow(search, call, call->name->kind);
        search_follow(search, call, call->name->kind->sibling);
    }
}

/* Are all calls of the circle still announced? */
static bool search_is_true(const struct deadlock_search *search)
{
    bool is_true = search->last;

    hli_mutex_lock(&blocked_mutex);
    for (const struct deadlock_call *call = search->last; is_true && call != &search->first;
         call = call->waiter) {
        const struct hli_blocked *blocked = call->owner->blocked;
        is_true = blocked && blocked->serial == call->serial;
    }
    hli_mutex_unlock(&blocked_mutex);
    return is_true;
}

/* How much of an error's text is left behind "acquire 'name': ". */
static size_t search_room(const struct deadlock_search *search)
{
    const struct hli_name *name = search->first.name;
    char shown[96];

    hli_error_escape(shown, sizeof(shown), name->bytes, name->length);
    return sizeof(((hl_error *)NULL)->text) - sizeof("acquire '': ") - strlen(shown);
}

/* "its owner waits for 'b', whose owner waits for 'c', which this owner holds"; in part, if it is
 * longer than an error's text. */
static void search_write(struct deadlock_search *search, char text[DEADLOCK_TEXT])
{
    static const char end[] = "which this owner holds", cut[] = "and so on, back to this owner";
    size_t room = search_room(search) - sizeof(cut), used = 0;
    char shown[DEADLOCK_NAME], step[2 * DEADLOCK_NAME];
    struct deadlock_call *call, *next = NULL;

    for (call = search->last; call != &search->first; next = call, call = call->waiter)
        call->holder = next;
    for (call = next; call; call = call->holder) {
        const struct hli_name *name = call->name;
        hli_error_escape(shown, sizeof(shown), name->bytes, name->length);
        int size = snprintf(step, sizeof(step), "%s owner waits for '%s', ",
                            call == next ? "its" : "whose", shown);
        if (used + (size_t)size > room)
            break;
        memcpy(text + used, step, (size_t)size);
        used += (size_t)size;
    }
    snprintf(text + used, DEADLOCK_TEXT - used, "%s", call ? cut : end);
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
    if (older == 0)
        return;
    search_init(&search, blocked, older);
    search_run(&search);
    bool is_deadlock = search_is_true(&search);
    if (is_deadlock)
        search_write(&search, text);
    search_deinit(&search);
    if (is_deadlock)
        blocked_refuse(acquire, text);
}
