/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The busy answer: recorded; the end of tries; orphans; the sleep of the other waiters. */
#include "lease/acquire/busy.h"

#include "base/probe.h"
#include "base/random.h"
#include "lease/acquire/ask.h"
#include "lease/hold/hold.h"
#include "lease/hold/tag.h"
#include "lease/state/contention.h"

#include <stdio.h>
#include <string.h>

enum {
    BUSY_QUIET_MS = 10,  /* no message makes us ask for so long, after more than ... */
    BUSY_MISLED_MAX = 2, /* ... so many in a row that told nothing new */
};

/* {0, pttl, seconds, microseconds, holder, count[, tag]} */
enum { BUSY_PTTL = 1, BUSY_SECONDS, BUSY_MICROSECONDS, BUSY_HOLDER, BUSY_COUNT, BUSY_TAG };

uint64_t hli_busy_stamp(const struct hli_answer *answer)
{
    int64_t seconds = 0, microseconds = 0;

    hli_reply_integer_at(answer->reply, BUSY_SECONDS, &seconds);
    hli_reply_integer_at(answer->reply, BUSY_MICROSECONDS, &microseconds);
    return (uint64_t)seconds * 1000000 + (uint64_t)microseconds;
}

uint64_t hli_busy_own_number(const struct hli_name *name)
{
    const char *owner = name->contention->busy.info.owner;
    char field[HLI_FIELD_SIZE];

    if (strlen(owner) <= HLI_UUID_LENGTH)
        return 0;
    uint64_t number = strtoull(owner + HLI_UUID_LENGTH + 1, NULL, 10);
    return strcmp(hli_tenure_write_field(name, number, field), owner) == 0 ? number : 0;
}

bool hli_busy_finish_tries(struct hli_turn *turn, hli_ns sent_at)
{
    struct hli_acquire *acquire = TAILQ_FIRST(&turn->name->waiters);
    bool has_later = false;

    while (acquire) {
        struct hli_acquire *next = TAILQ_NEXT(acquire, link);
        if (acquire->is_try && acquire->wait.started <= sent_at)
            hli_acquire_fail_busy(turn, acquire, HL_EBUSY);
        else
            has_later = has_later || acquire->is_try;
        acquire = next;
    }
    return has_later;
}

/* A request that goes alone (command.h) has no place in the queue: the next one enters it. */
hli_ns hli_busy_poll_at(const struct hli_turn *turn)
{
    int64_t poll_ms = turn->name->client->settings.poll_ms;
    hli_ns at = hli_after_ms(turn->now, poll_ms + hli_random_upto(poll_ms * 3 / 10));
    hli_ns alone_until = atomic_load(&turn->name->alone_until);

    return alone_until > turn->now && alone_until < at ? alone_until : at;
}

/* When the holder's lease is over: no message announces that. */
static hli_ns busy_expiry_at(const struct hli_turn *turn)
{
    int64_t pttl_ms = turn->name->contention->busy.info.lease_left_ms;

    return pttl_ms < 0 ? HLI_NEVER : hli_after_ms(turn->now, pttl_ms + 1);
}

/* A message came since the last busy answer, and the holder is the same: it told nothing new. This
 * can happen to an honest message too, because it comes by another connection than the answers; but
 * not to several in a row. */
static bool busy_was_misled(struct hli_contention *contention, const struct hli_busy *before)
{
    if (before->at == 0 || strcmp(before->info.owner, contention->busy.info.owner) != 0)
        contention->misled = 0;
    else if (contention->heard_at >= before->at)
        contention->misled++;
    return contention->misled > BUSY_MISLED_MAX;
}

/* Plans when a spin lock's waiter asks again: after twice as long each time, with jitter. */
static void busy_back_off(struct hli_turn *turn, struct hli_acquire *acquire)
{
    const struct hli_acquire_mode *mode = &acquire->mode;
    int64_t pause_ms = acquire->backoff_ms > 0 ? acquire->backoff_ms : mode->backoff_ms;

    if (turn->now >= acquire->backoff_at) {
        acquire->backoff_at = hli_after_ms(turn->now, pause_ms + hli_random_upto(pause_ms / 4));
        acquire->backoff_ms =
            pause_ms * 2 < mode->backoff_max_ms ? pause_ms * 2 : mode->backoff_max_ms;
    }
    turn->name->current->ask_at = hli_earlier(turn->name->current->ask_at, acquire->backoff_at);
}

/* Plans when the spin locks' waiters ask again. True if a waiter listens for messages. */
static bool busy_has_listeners(struct hli_turn *turn)
{
    struct hli_acquire *acquire;
    bool listens = false;

    TAILQ_FOREACH (acquire, &turn->name->waiters, link) {
        listens = listens || acquire->mode.backoff_ms == 0 || acquire->mode.listens;
        if (acquire->mode.backoff_ms > 0)
            busy_back_off(turn, acquire);
    }
    return listens;
}

static void busy_sleep(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_busy *before)
{
    struct hli_contention *contention = turn->name->contention;
    hli_ns sent_at = tenure->ask.sent_at;

    tenure->ask_at = HLI_NEVER;
    if (!busy_has_listeners(turn))
        return;
    /* Did the request miss a message? Or was it sent for tries only, so that its field is not in
     * the queue? */
    bool may_have_missed = contention->heard_at >= sent_at || contention->confirmed_at > sent_at ||
                           (!tenure->is_queued && hli_waiters_queue(turn->name));
    bool was_misled = busy_was_misled(contention, before);

    hli_turn_listen(turn);
    if (was_misled)
        contention->quiet_until = hli_after_ms(turn->now, BUSY_QUIET_MS);
    tenure->ask_at = hli_earlier(tenure->ask_at, busy_expiry_at(turn));
    tenure->ask_at =
        hli_earlier(tenure->ask_at, may_have_missed && was_misled ? contention->quiet_until
                                    : may_have_missed             ? 0
                                                                  : hli_busy_poll_at(turn));
}

/* A key with a count of 0 rests: its holder has released it, and is not named by a tag. */
static void busy_note(struct hli_turn *turn, const struct hli_answer *answer)
{
    struct hli_busy *busy = &turn->name->contention->busy;
    hl_lock_info *info = &busy->info;
    const struct hli_reply *owner = hli_reply_text_at(answer->reply, BUSY_HOLDER);
    const struct hli_reply *tag = hli_reply_text_at(answer->reply, BUSY_TAG);
    int64_t count = 0;

    *busy = (struct hli_busy){.at = turn->now, .info = HL_LOCK_INFO_INIT};
    info->locked = true;
    info->lease_left_ms = -1;
    hli_reply_integer_at(answer->reply, BUSY_PTTL, &info->lease_left_ms);
    hli_reply_integer_at(answer->reply, BUSY_COUNT, &count);
    if (turn->name->kind->lacks)
        info->available = count;
    else
        info->hold_count = count < 0 || count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    snprintf(info->owner, sizeof(info->owner), "%s", owner ? owner->text : "");
    info->mine = strncmp(info->owner, turn->name->client->id, HLI_UUID_LENGTH) == 0;
    if (owner && tag && info->hold_count > 0)
        hli_tag_read(tag->text, owner->text, (int64_t)(hli_busy_stamp(answer) / 1000), info);
}

/* Any grant from now on is younger than this request. */
static void busy_set_anchor(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    if (!tenure->name->kind->served) /* else only an unanswered copy may have left something */
        tenure->may_stand = tenure->is_queued;
    tenure->has_waiters = false; /* an earlier want was about an earlier hold */
    tenure->anchor_at = tenure->ask.sent_at;
    tenure->busy_stamp = hli_busy_stamp(answer);
}

/* Is the holder a tenure of ours whose release is under way? Its posted release bounced, so the
 * request behind it ran first. Such an answer does not end a try; the name asks again when the
 * release is answered. */
static bool busy_is_with_ourselves(const struct hli_name *name)
{
    uint64_t number = hli_busy_own_number(name);
    const struct hli_tenure *tenure = number != 0 ? hli_name_tenure(name, number) : NULL;

    return tenure && tenure->is_releasing;
}

/*
 * A busy answer may name a field of this client that no tenure of the name knows. That is an
 * orphan, or a hold on the same name by another kind of lock, such as a fair lock. So the loop asks
 * all names of the client first, and releases the field only if none knows it.
 */
struct busy_orphan_hunt {
    struct hli_task task;
    struct hli_name *name; /* counted */
    uint64_t number;
    bool is_known;
};

static void busy_orphan_ask(struct hli_name *name, void *arg)
{
    struct busy_orphan_hunt *hunt = arg;

    if (name->length != hunt->name->length ||
        memcmp(name->bytes, hunt->name->bytes, name->length) != 0)
        return;
    hli_mutex_lock(&name->mutex);
    hunt->is_known = hunt->is_known || hli_name_tenure(name, hunt->number);
    hli_mutex_unlock(&name->mutex);
}

static void busy_orphan_free(struct busy_orphan_hunt *hunt)
{
    hli_name_unref(hunt->name);
    free(hunt);
}

static void busy_orphan_run(void *arg)
{
    struct busy_orphan_hunt *hunt = arg;
    struct hli_turn turn;

    hli_names_visit(hunt->name->client, busy_orphan_ask, hunt);
    if (!hunt->is_known) {
        hli_turn_begin(&turn, hunt->name);
        if (!hli_name_tenure(hunt->name, hunt->number))
            hli_releasing_orphan(&turn, hunt->number);
        hli_turn_end(&turn);
    }
    busy_orphan_free(hunt);
}

/* A resting key is left alone; so is a field that we would have written otherwise, because its
 * release would find nothing; so is every field of a kind with is_per_owner, because it may be
 * another name's. Without memory the next busy answer shows the orphan again. */
static void busy_orphan_check(struct hli_turn *turn)
{
    struct hli_name *name = turn->name;
    uint64_t number = hli_busy_own_number(name);

    if (number == 0 || name->kind->is_per_owner || name->kind->quorum ||
        name->contention->busy.info.hold_count == 0 || hli_name_tenure(name, number))
        return;
    struct busy_orphan_hunt *hunt = malloc(sizeof(*hunt));
    if (!hunt)
        return;
    *hunt = (struct busy_orphan_hunt){.name = name, .number = number};
    hunt->task = (struct hli_task){.run = busy_orphan_run, .arg = hunt};
    hli_name_ref(name);
    if (!hli_loop_post(name->client->loop, &hunt->task))
        busy_orphan_free(hunt);
}

void hli_busy_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer)
{
    struct hli_name *name = turn->name;
    struct hli_contention *contention = hli_contention_of(name);

    busy_set_anchor(tenure, answer);
    name->asked_at = 0;
    if (tenure->state == HLI_TENURE_ASK)
        hli_tenure_move(tenure, HLI_TENURE_WAIT);
    if (!contention) { /* out of memory: asks again, until the answer can be recorded */
        hli_busy_finish_tries(turn, tenure->ask.sent_at);
        tenure->ask_at = hli_after_ms(turn->now, HLI_NO_MEMORY_MS);
        return;
    }
    struct hli_busy before = contention->busy;
    busy_note(turn, answer);
    if (busy_is_with_ourselves(name)) {
        tenure->ask_at = hli_busy_poll_at(turn);
        return;
    }
    HLI_PROBE2(busy, name->bytes, contention->busy.info.lease_left_ms);
    bool asks_again = hli_busy_finish_tries(turn, tenure->ask.sent_at);
    busy_orphan_check(turn);
    busy_sleep(turn, tenure, &before);
    if (asks_again)
        tenure->ask_at = 0;
}
