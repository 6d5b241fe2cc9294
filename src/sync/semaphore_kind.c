/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The semaphore's kind: one request of a process asks for all its waiters, in the order of their
 * arrival, and what it takes goes to the first of them. Its id is the tenure's number.
 */
#include "lease/acquire.h"
#include "lease/ask.h"
#include "lease/release.h"
#include "sync/semaphore.h"

/* {1, taken}; a longer answer has what a busy one has, too. */
enum { SEMAPHORE_TAKEN = 2 };

/* How many waiters one request asks for: what they need together is counted in 32 bits. */
static unsigned semaphore_count_waiters(const struct hli_name *name)
{
    const struct hli_acquire *acquire;
    unsigned waiters = 0;
    int64_t needs = 0;

    TAILQ_FOREACH (acquire, &name->waiters, link) {
        needs += acquire->way.need;
        if (waiters == HLI_NOTED_NEEDS || needs > UINT32_MAX)
            break;
        waiters++;
    }
    return waiters;
}

static int semaphore_take(const struct hli_tenure *tenure, struct hli_op *op,
                          const struct hli_taking *taking)
{
    unsigned waiters = semaphore_count_waiters(tenure->name);
    struct hli_acquire *acquire;
    struct hli_noted noted;

    (void)taking;
    hli_noted_begin(&noted, tenure->name, tenure->number);
    hli_noted_number(&noted, waiters);
    TAILQ_FOREACH (acquire, &tenure->name->waiters, link) {
        acquire->is_asked = waiters > 0;
        if (waiters == 0)
            continue;
        hli_noted_number(&noted, acquire->way.need);
        waiters--;
    }
    return hli_noted_format(&noted, op, HLI_SCRIPT_SEMAPHORE_ACQUIRE);
}

static int semaphore_leave(const struct hli_tenure *tenure, struct hli_op *op,
                           const struct hli_leaving *leaving)
{
    struct hli_noted noted;

    hli_noted_begin(&noted, tenure->name, tenure->number);
    hli_noted_tell(&noted);
    hli_noted_number(&noted, leaving->count);
    return hli_noted_format(&noted, op, HLI_SCRIPT_SEMAPHORE_UNDO);
}

/* Whoever was asked for may have left meanwhile, and somebody else have come: it goes to those who
 * wait now, in their order, and what is left over goes back. */
static void semaphore_taken(struct hli_turn *turn, struct hli_tenure *tenure,
                            const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *head;
    hli_ns sent_at = tenure->ask.sent_at;
    int64_t left = 0;

    hli_reply_integer_at(answer->reply, answer->reply->length - 1, &left);
    name->answered_at = turn->now;
    name->asked_at = 0;
    while ((head = TAILQ_FIRST(&name->waiters)) && head->way.need <= left) {
        left -= head->way.need;
        tenure->keeps += head->way.need;
        hli_acquire_serve(turn, head);
    }
    if (left > 0) {
        hli_release_quietly(turn, tenure);
        hli_ask_go(turn);
        return;
    }
    if (!tenure->may_stand) /* no copy of it is on its way */
        hli_settle(name, tenure->number);
    hli_tenure_bury(turn, tenure);
    if (head && head->is_asked && answer->reply->length > SEMAPHORE_TAKEN)
        hli_ask_wait_on(turn, answer, sent_at);
    else
        hli_ask_go(turn);
}

const struct hli_kind hli_kind_semaphore = {
    .id = 's',
    .has_no_owner = true,
    .is_counted = true,
    .channel = "redisson_sc:",
    .field_suffix = "",
    .lacks = "too few permits",
    .take = semaphore_take,
    .leave = semaphore_leave,
    .taken = semaphore_taken,
};
