/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The latch's kind: one request of a process asks for all its waiters whether it is open. It takes
 * nothing, so there is nothing to be given back. */
#include "lease/acquire.h"
#include "lease/ask.h"
#include "lease/release.h"
#include "sync/latch.h"

static int latch_take(const struct hli_tenure *tenure, struct hli_op *op,
                      const struct hli_taking *taking)
{
    const struct hli_bytes key = {tenure->name->bytes, tenure->name->length};

    (void)taking;
    return hli_op_script(op, HLI_SCRIPT_LATCH_COUNT,
                         &(struct hli_script_words){.keys = &key, .key_count = 1});
}

/* Who came after the request was sent may have found the latch closed again. */
static void latch_taken(struct hli_turn *turn, struct hli_tenure *tenure,
                        const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_acquire *acquire = TAILQ_FIRST(&name->waiters);

    (void)answer;
    name->answered_at = turn->now;
    name->asked_at = 0;
    while (acquire) {
        struct hli_acquire *next = TAILQ_NEXT(acquire, link);
        if (acquire->wait.started <= tenure->ask.sent_at)
            hli_acquire_serve(turn, acquire);
        acquire = next;
    }
    hli_tenure_bury(turn, tenure);
    hli_ask_go(turn);
}

const struct hli_kind hli_kind_latch = {
    .id = 'c',
    .has_no_owner = true,
    .channel = "redisson_countdownlatch__channel__",
    .field_suffix = "",
    .lacks = "the latch is closed",
    .verb = "await",
    .take = latch_take,
    .taken = latch_taken,
};
