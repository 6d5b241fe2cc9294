/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The waiters of a name. */
#include "lease/state/waiters.h"

#include "lease/state/contention.h"
#include "lease/state/waiter_tag.h"

void hli_waiters_join(struct hli_turn *turn, struct hli_acquire *acquire, bool at_head)
{
    struct hli_name *name = turn->name;

    if (at_head)
        TAILQ_INSERT_HEAD(&name->waiters, acquire, link);
    else
        TAILQ_INSERT_TAIL(&name->waiters, acquire, link);
    acquire->is_waiting = true;
    if (!name->kind->changed)
        hli_count(&name->client->counters.waiters_now);
    if (name->current) /* a try is answered by a request that was sent after it began */
        hli_tenure_ask_soon(name->current);
}

void hli_waiters_leave(struct hli_turn *turn, struct hli_acquire *acquire)
{
    struct hli_name *name = turn->name;

    TAILQ_REMOVE(&name->waiters, acquire, link);
    acquire->is_waiting = false;
    if (acquire->tag) {
        SLIST_INSERT_HEAD(&turn->untagged, acquire->tag, link);
        acquire->tag = NULL;
        acquire->tag_at = turn->now; /* if it comes back */
    }
    if (!name->kind->changed)
        hli_uncount(&name->client->counters.waiters_now);
    if (TAILQ_EMPTY(&name->waiters)) {
        name->asked_at = 0;
        if (name->contention)
            name->contention->idle_since = turn->now;
    }
}

/* Of a kind with is_counted: the waiters behind one that needed more may fit now. The name asks for
 * them as after a message, because a request under way is about the waiter that left. */
static void waiters_make_room(struct hli_turn *turn, const struct hli_acquire *acquire)
{
    struct hli_name *name = turn->name;

    if (!name->kind->is_counted || !TAILQ_NEXT(acquire, link))
        return;
    if (hli_contention_of(name))
        name->contention->heard_at = turn->now;
    if (TAILQ_FIRST(&name->waiters) == acquire)
        hli_tenure_ask_soon(name->current);
}

void hli_waiters_withdraw(struct hli_turn *turn, struct hli_acquire *acquire)
{
    if (acquire->is_waiting) {
        waiters_make_room(turn, acquire);
        hli_waiters_leave(turn, acquire);
    } else if (acquire->got && acquire->got->reentry == acquire) {
        acquire->got->reentry = NULL;
    }
}

void hli_waiters_serve(struct hli_turn *turn, struct hli_acquire *acquire)
{
    hli_waiters_leave(turn, acquire);
    hli_turn_finish(turn, &acquire->wait, HL_OK);
}

void hli_waiters_fail(struct hli_turn *turn, struct hli_acquire *acquire, int code,
                      const char *text)
{
    const struct hli_name *name = turn->name;

    hli_waiters_withdraw(turn, acquire);
    if (!name->kind->changed)
        hli_count_failure(name->client, HL_CALL_ACQUIRE, code, hli_answer_reason(code, text));
    hli_name_fail(acquire->wait.err, code, name, name->kind->verb ? name->kind->verb : "acquire",
                  text);
    hli_turn_finish(turn, &acquire->wait, code);
}

void hli_waiters_fail_all(struct hli_turn *turn, int code, const char *text)
{
    struct hli_acquire *acquire;

    while ((acquire = TAILQ_FIRST(&turn->name->waiters)))
        hli_waiters_fail(turn, acquire, code, text);
}

/* A try does not stand in the queue, because its answer ends it; nor does a spin lock's waiter,
 * which asks again by itself. */
bool hli_waiters_queue(const struct hli_name *name)
{
    const struct hli_acquire *acquire;

    TAILQ_FOREACH (acquire, &name->waiters, link)
        if (!acquire->is_try && acquire->mode.backoff_ms == 0)
            return true;
    return false;
}
