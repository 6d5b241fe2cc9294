/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Grants and wants: parsed, judged, and applied. */
#include "lease/acquire/grant.h"

#include "base/probe.h"
#include "lease/acquire/busy.h"
#include "lease/hold/hold.h"
#include "lease/state/command.h"
#include "lease/state/contention.h"
#include "lease/state/grace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRANT_RENEW_MS = 100 }; /* a shorter hold costs no renewal */

static const uint64_t grant_claim_max_ms = UINT64_C(1000000000000); /* no sum of times overflows */

struct grant {
    uint64_t number;  /* of our field */
    uint64_t stamp;   /* the server's time when it was written, in microseconds */
    int64_t claim_ms; /* the lease it was written with, by the settings of the granting client */
    int64_t sure_ms;  /* what of it we rely on */
    uint64_t waiting; /* how many others still wait */
    uint64_t token;   /* of a fenced lock; else 0 */
    const char *name;
    size_t length;
};

/* A decimal number and a space. */
static bool grant_read_number(const char **text, uint64_t *ret_number)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    *ret_number = strtoull(*text, &end, 10);
    *text = end + 1;
    return *end == ' ';
}

/* "g <uuid>:<number> <seconds> <microseconds> <claim> <waiting> <name>"; of a fenced lock "f", and
 * the token before the name. */
static bool grant_read(const hl_client *client, const struct hli_bytes *text, struct grant *ret)
{
    const char *bytes = text->data, *at = bytes + 2 + HLI_UUID_LENGTH + 1;
    uint64_t seconds, microseconds, claim_ms;

    ret->token = 0;
    if (text->length < 2 + HLI_UUID_LENGTH + 1 ||
        memcmp(bytes + 2, client->id, HLI_UUID_LENGTH) != 0 || at[-1] != ':')
        return false;
    if (!grant_read_number(&at, &ret->number) || !grant_read_number(&at, &seconds) ||
        !grant_read_number(&at, &microseconds) || !grant_read_number(&at, &claim_ms) ||
        !grant_read_number(&at, &ret->waiting) || claim_ms > grant_claim_max_ms ||
        (bytes[0] == 'f' && !grant_read_number(&at, &ret->token)))
        return false;
    ret->claim_ms = (int64_t)claim_ms;
    ret->sure_ms = hli_grace_at_most(client, ret->claim_ms);
    ret->stamp = seconds * 1000000 + microseconds;
    ret->name = at;
    ret->length = text->length - (size_t)(at - bytes);
    return ret->length > 0 && ret->length <= HLI_NAME_LIMIT;
}

/*
 * Until when a grant surely lasts; 0: it is void. It was written after the last request that was
 * answered busy was sent (or the first request), for the time of a claim; the server's clock only
 * orders it against that answer. An older grant is void: the field had the lock, and lost it again.
 */
static hli_ns grant_valid_until(const struct hli_tenure *tenure, const struct grant *grant)
{
    if (tenure->anchor_at == 0 || grant->stamp < tenure->busy_stamp)
        return 0;
    return hli_lease_validity(tenure->anchor_at, grant->sure_ms);
}

static void grant_begin_hold(struct hli_turn *turn, struct hli_tenure *tenure,
                             const struct grant *grant)
{
    struct hli_name *name = turn->name;
    int64_t claim_ms = grant->claim_ms;
    int64_t renew_ms = claim_ms / 3 < GRANT_RENEW_MS ? claim_ms / 3 : GRANT_RENEW_MS;

    hli_tenure_extend(tenure, tenure->anchor_at, grant->sure_ms, 0, tenure->ask.term);
    if (tenure->longest_lease_ms < claim_ms)
        tenure->longest_lease_ms = claim_ms;
    tenure->may_stand = true;
    tenure->least_count = tenure->most_count = 1;
    tenure->grant_stamp = grant->stamp;
    tenure->token = grant->token;
    tenure->tokens = grant->token != 0 ? 1 : 0;
    tenure->renew_at = hli_after_ms(turn->now, renew_ms);
    tenure->no_waiters_at = grant->waiting == 0 ? tenure->anchor_at : 0;
    tenure->has_waiters = tenure->has_waiters || grant->waiting > 0;
    name->asked_at = 0;
    hli_count(&name->client->counters.grants);
    HLI_PROBE1(grant, name->bytes);
    hli_hold_begin(turn, TAILQ_FIRST(&name->waiters), turn->now);
    hli_busy_finish_tries(turn, turn->now); /* the lock is held now */
}

/* A grant that is void, too late, without a wanted token, or for a waiter that needs replicas is
 * not released: the tenure asks whether its field is still in the lock, and the replicas confirm
 * the answer. An answer in flight may be older than the grant; heard_at
 * makes the tenure ask once more then. */
static void grant_take(struct hli_turn *turn, struct hli_tenure *tenure, const struct grant *grant)
{
    const struct hli_acquire_mode *mode = &TAILQ_FIRST(&turn->name->waiters)->mode;
    bool has_all = (grant->token != 0 || !mode->is_fenced) && mode->replicas == 0;

    if (has_all && turn->now < grant_valid_until(tenure, grant)) {
        grant_begin_hold(turn, tenure, grant);
        return;
    }
    struct hli_contention *contention = hli_contention_of(turn->name);
    if (contention)
        contention->heard_at = turn->now;
    tenure->ask_at = 0;
}

static void grant_arrived(struct hli_name *name, const struct grant *grant)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    struct hli_tenure *tenure = hli_name_tenure(name, grant->number);
    if (!tenure)
        hli_releasing_orphan(&turn, grant->number); /* its waiter has left: to the next */
    else if (hli_tenure_is_contending(tenure) && !TAILQ_EMPTY(&name->waiters))
        grant_take(&turn, tenure, grant); /* without waiters, hli_ask_abandon() releases it */
    else if (tenure->is_releasing)
        tenure->may_stand = true; /* a release in flight that finds nothing ran before the grant */
    hli_turn_end(&turn);
}

/* Another client waits for this lock: the tenure is not kept beyond its hold. */
static void grant_is_wanted(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    struct hli_tenure *tenure = name->current;
    if (tenure) /* also a tenure that will hear only now, by the other connection, that it has the
                   key */
        tenure->has_waiters = true;
    hli_turn_end(&turn);
}

/* A name that this process has forgotten is made again, because its key is ours to release. */
static void grant_on_grant(hl_client *client, const struct hli_bytes *text)
{
    struct grant grant;

    if (!grant_read(client, text, &grant))
        return;
    const struct hli_name_key key = {
        .kind = client->mailbox_kind, .bytes = grant.name, .length = grant.length};
    struct hli_name *name = hli_name_get(client, &key);
    if (!name)
        return;
    grant_arrived(name, &grant);
    hli_name_unref(name);
}

/* "w <name>" */
static void grant_on_want(hl_client *client, const struct hli_bytes *text)
{
    const struct hli_name_key key = {.kind = client->mailbox_kind,
                                     .bytes = (const char *)text->data + 2,
                                     .length = text->length - 2};
    struct hli_name *name = hli_name_find(client, &key);

    if (!name)
        return;
    grant_is_wanted(name);
    hli_name_unref(name);
}

/* "l <name>": what this client holds of that name, of whatever kind, may have been taken away by
 * force. A caller may have read it, and only the loop visits names. */
struct grant_look {
    struct hli_task task;
    hl_client *client; /* borrowed: the loop ends before it */
    size_t length;
    char name[];
};

static void grant_look_at(struct hli_name *name, void *arg)
{
    const struct grant_look *look = arg;
    struct hli_turn turn;

    if (!name->kind->force || name->length != look->length ||
        memcmp(name->bytes, look->name, look->length) != 0)
        return;
    hli_turn_begin(&turn, name);
    if (name->current)
        hli_hold_doubt(&turn, name->current, turn.now);
    hli_turn_end(&turn);
}

static void grant_look_run(void *arg)
{
    struct grant_look *look = arg;

    hli_names_visit(look->client, grant_look_at, look);
    free(look);
}

/* Without memory a renewal finds out, as without the message. */
static void grant_on_look(hl_client *client, const struct hli_bytes *text)
{
    size_t length = text->length - 2;
    struct grant_look *look = length <= HLI_NAME_LIMIT ? malloc(sizeof(*look) + length) : NULL;

    if (!look)
        return;
    *look = (struct grant_look){.client = client, .length = length};
    look->task = (struct hli_task){.run = grant_look_run, .arg = look};
    memcpy(look->name, (const char *)text->data + 2, length);
    if (!hli_loop_post(client->loop, &look->task))
        free(look);
}

static hl_client *grant_client_of(struct hli_channel *channel)
{
    return HLI_OF(channel, struct hl_client, mailbox);
}

static void grant_on_message(struct hli_channel *channel, const struct hli_message *message)
{
    hl_client *client = grant_client_of(channel);
    const char *bytes = message->text.data;

    if (message->text.length < 3 || bytes[1] != ' ')
        return;
    if (bytes[0] == 'g' || bytes[0] == 'f')
        grant_on_grant(client, &message->text);
    else if (bytes[0] == 'w')
        grant_on_want(client, &message->text);
    else if (bytes[0] == 'l')
        grant_on_look(client, &message->text);
}

/* Without messages the grants are found by polls, and our requests say so. */
static void grant_on_confirmed(struct hli_channel *channel)
{
    hl_client *client = grant_client_of(channel);

    atomic_store(&client->is_deaf, channel->is_denied);
    if (channel->is_denied)
        hli_contention_tell_denied(client, channel);
}

void hli_grants_init(hl_client *client, const struct hli_kind *kind)
{
    struct hli_channel *mailbox = &client->mailbox;

    snprintf(client->mailbox_name, sizeof(client->mailbox_name), HLI_MAILBOX "%s", client->id);
    client->mailbox_kind = kind;
    mailbox->names[0].bytes = hli_bytes_of(client->mailbox_name);
    mailbox->confirmed = grant_on_confirmed;
    mailbox->message = grant_on_message; /* asking finds a grant from before it listens */
}

/* In a cluster each name that waits listens to a mailbox of its own. */
void hli_grants_listen(hl_client *client)
{
    if (client->wording->is_for_cluster)
        return;
    /* without memory we poll */
    hli_channel_want(hli_link_pubsub(hli_client_link(client, 0, 0)), &client->mailbox);
}

void hli_grants_stop_listening(hl_client *client)
{
    hli_channel_drop(&client->mailbox);
}

/* Did the grant run out before that answer? Yes, if another owner had the key after the grant; or
 * if the key was free, because another owner may have had it in between. */
static bool grant_ran_out(const struct hli_tenure *tenure, const struct hli_answer *answer)
{
    int64_t status = -2, was_free = 0;

    if (answer->verdict != HLI_REPLIED)
        return false;
    hli_reply_integer_at(answer->reply, 0, &status);
    hli_reply_integer_at(answer->reply, 1, &was_free);
    if (status == 0)
        return hli_busy_stamp(answer) > tenure->grant_stamp;
    return was_free == 1;
}

bool hli_grant_stood(const struct hli_tenure *tenure, const struct hli_answer *answer)
{
    bool has_run = answer->verdict != HLI_BOUNCED && answer->verdict != HLI_UNSENT;

    return !has_run || (answer->verdict == HLI_REPLIED && !grant_ran_out(tenure, answer));
}

/* The grant came by the other connection. The answer "ours" is good for a whole lease; a busy
 * answer from before the grant says nothing new. */
bool hli_grant_crossed(struct hli_tenure *tenure, const struct hli_answer *answer)
{
    int64_t status = -2;

    if (answer->verdict == HLI_REPLIED)
        hli_reply_integer_at(answer->reply, 0, &status);
    if (grant_ran_out(tenure, answer))
        return false;
    unsigned confirmed = hli_op_confirmed(&tenure->ask, answer);
    /* Its tokens, if any, are left unused: the grant's is as good. */
    if (status == 1 && hli_hold_takes(tenure, confirmed))
        hli_tenure_extend(tenure, tenure->ask.sent_at, tenure->asked_lease_ms, confirmed,
                          tenure->ask.term);
    return true;
}
