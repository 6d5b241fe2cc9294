/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Which holds go into the next renewal. */

#include "lease/hold/renewal_queue.h"

#include "support/test.h"

enum { HOLDS = 4 };

static const struct hli_kind kind;
static struct hli_name names[HOLDS];
static struct hli_tenure tenures[HOLDS];
static struct hli_renewal_queue queue;

static void set_up(void)
{
    hli_renewal_queue_init(&queue, NULL, NULL);
    for (int i = 0; i < HOLDS; i++) {
        names[i].slot = (uint16_t)i;
        names[i].kind = &kind;
        tenures[i].name = &names[i];
        tenures[i].renew_lease_ms = 30000;
    }
}

static void add(int hold)
{
    hli_renewal_queue_add(&queue, &tenures[hold]);
}

/* Sends the next batch, which is of one hold, and has its answer. */
static int renew_next(void)
{
    struct hli_renewal *renewal = hli_renewal_queue_fill(&queue);
    check(renewal && renewal->count == 1);
    struct hli_tenure *tenure = hli_renewal_pop(renewal);
    hli_renewal_queue_take_back(renewal);
    return (int)(tenure - tenures);
}

static void end(void)
{
    while (hli_renewal_queue_pop(&queue))
        continue;
    hli_renewal_queue_deinit(&queue);
}

/* More holds are due than the server can renew in time: each is as late as the others. */
Test(renewal_queue, gives_each_slot_its_turn_although_lower_ones_are_due_again, .init = set_up)
{
    for (int i = 0; i < HOLDS; i++)
        add(i);
    for (int i = 0; i < 3 * HOLDS; i++) {
        int hold = renew_next();
        check_int(hold, i % HOLDS);
        add(hold);
    }
    end();
}

Test(renewal_queue, lets_a_higher_slot_come_into_the_round_and_a_lower_one_wait, .init = set_up)
{
    add(1);
    add(3);
    check_int(renew_next(), 1);
    add(0);
    add(2);
    check_int(renew_next(), 2);
    check_int(renew_next(), 3);
    check_int(renew_next(), 0);
    check(!hli_renewal_queue_may_send(&queue));
    end();
}

Test(renewal_queue, renews_holds_of_one_slot_together, .init = set_up)
{
    names[2].slot = names[1].slot;
    for (int i = 0; i < HOLDS; i++)
        add(i);
    check_int(renew_next(), 0);
    struct hli_renewal *renewal = hli_renewal_queue_fill(&queue);
    check_int(renewal->count, 2);
    while (hli_renewal_pop(renewal))
        continue;
    hli_renewal_queue_take_back(renewal);
    check_int(renew_next(), 3);
    end();
}
