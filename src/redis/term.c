/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Terms: the question, its answer, and their numbers. */
#include "redis/term.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint terms_met = 1; /* in this process */

void hli_term_init(struct hli_term *term, int64_t grace_ms)
{
    atomic_init(&term->number, grace_ms > 0 ? 1 : 0);
}

int hli_term_ask(struct hli_op *op, const struct hli_term_options *options, bool is_cluster)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_TERM);
    char grace[24], old[24];
    const struct hli_bytes words[] = {
        hli_bytes_of("EVAL"),
        {script->text, script->length},
        hli_bytes_of("0"),
        {grace, (size_t)snprintf(grace, sizeof(grace), "%" PRId64, options->grace_ms)},
        {old, (size_t)snprintf(old, sizeof(old), "%" PRId64, options->old_master_ms)},
        hli_bytes_of(is_cluster ? "1" : "0")};

    return hli_op_command(op, words, sizeof(words) / sizeof(words[0]));
}

int hli_term_read(const struct hli_answer *answer, struct hli_term_said *ret_said, hl_error *err)
{
    if (answer->verdict != HLI_REPLIED)
        return hli_fail(err, answer->code, "failover_grace_ms: the server's term: %s",
                        answer->text);
    bool is_meant = hli_script_may_answer(HLI_SCRIPT_TERM, answer->reply);
    const struct hli_reply *id = is_meant ? hli_reply_text_at(answer->reply, 5) : NULL;
    if (!id || strlen(id->text) != HLI_TERM_ID_LENGTH)
        return hli_fail(err, HL_EPROTO, "failover_grace_ms: the server tells no term");
    ret_said->told_at = hli_now();
    hli_reply_integer_at(answer->reply, 1, &ret_said->grace_left_ms);
    hli_reply_integer_at(answer->reply, 2, &ret_said->grace_ends_ms);
    hli_reply_integer_at(answer->reply, 3, &ret_said->options.grace_ms);
    hli_reply_integer_at(answer->reply, 4, &ret_said->options.old_master_ms);
    memcpy(ret_said->id, id->text, sizeof(ret_said->id));
    return 0;
}

int hli_term_ask_again(struct hli_op *op)
{
    const char *const words[] = {"INFO", "replication", NULL};

    return hli_op_texts(op, words);
}

bool hli_term_is_another(const struct hli_answer *answer, const char *id)
{
    static const char key[] = "master_replid:";
    bool is_text = answer->verdict == HLI_REPLIED && answer->reply->kind == HLI_REPLY_STRING;
    const char *at = is_text ? strstr(answer->reply->text, key) : NULL;

    return at && strncmp(at + strlen(key), id, HLI_TERM_ID_LENGTH) != 0;
}

int hli_term_ask_bounds(struct hli_op *op)
{
    const char *const words[] = {"CONFIG", "GET", "min-replicas-*", NULL};

    return hli_op_texts(op, words);
}

/* Names and values, one after the other. */
void hli_term_read_bounds(const struct hli_answer *answer, struct hli_term_said *said)
{
    const struct hli_reply *name, *value;

    said->min_replicas = said->max_lag_s = -1;
    if (answer->verdict != HLI_REPLIED)
        return;
    for (size_t i = 0; (name = hli_reply_text_at(answer->reply, i)) != NULL &&
                       (value = hli_reply_text_at(answer->reply, i + 1)) != NULL;
         i += 2) {
        if (strcmp(name->text, "min-replicas-to-write") == 0)
            said->min_replicas = strtoll(value->text, NULL, 10);
        else if (strcmp(name->text, "min-replicas-max-lag") == 0)
            said->max_lag_s = strtoll(value->text, NULL, 10);
    }
}

const char *hli_term_advice(const struct hli_term_said *said, int64_t old_master_ms)
{
    if (said->min_replicas == 0 || said->max_lag_s == 0)
        return "failover_grace_ms: min-replicas-to-write or min-replicas-max-lag is 0, so that a "
               "master that is cut off goes on for ever, and two owners may hold a lock: set them, "
               "and old_master_ms to min-replicas-max-lag at least";
    if (said->max_lag_s > old_master_ms / 1000)
        return "failover_grace_ms: old_master_ms is less than min-replicas-max-lag, the time for "
               "which a master that is cut off goes on: two owners may hold a lock meanwhile";
    return NULL;
}

bool hli_term_warns(const struct hli_term_said *said, const struct hli_term_options *own,
                    char text[HLI_TERM_TEXT])
{
    const struct hli_term_options *others = &said->options;

    if (others->grace_ms == own->grace_ms && others->old_master_ms == own->old_master_ms)
        return false;
    snprintf(text, HLI_TERM_TEXT,
             "another client has failover_grace_ms %" PRId64 " and old_master_ms %" PRId64
             ", this one %" PRId64 " and %" PRId64
             ": after a failover two owners may hold a lock, if a lease is longer than another "
             "client's grace less its old_master_ms",
             others->grace_ms, others->old_master_ms, own->grace_ms, own->old_master_ms);
    return true;
}

/* Counts from the arrival of the answer, which is later than the server's count, and adds what a
 * clock may drift meanwhile. */
static hli_ns term_grace_until(const struct hli_term_said *said)
{
    int64_t left_ms = said->grace_left_ms;

    return left_ms > 0 ? hli_after_ms(hli_after_ms(said->told_at, left_ms), left_ms / 100 + 2) : 0;
}

void hli_term_meet(struct hli_term *term, struct hli_term *first, const struct hli_term_said *said)
{
    bool is_new = strcmp(first->id, said->id) != 0;

    if (is_new)
        first->latest = atomic_fetch_add(&terms_met, 1) + 1;
    memcpy(first->id, said->id, sizeof(first->id));
    first->is_told = first->is_told && !is_new;
    atomic_store(&term->ahead_ms,
                 said->grace_ends_ms - said->grace_left_ms - said->told_at / 1000000 - 1);
    atomic_store(&term->grace_until, term_grace_until(said));
    atomic_store(&term->number, first->latest);
}
