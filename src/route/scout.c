/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Scouting: an inquiry with three questions. */
#include "route/scout.h"

#include "base/check.h"
#include "base/error.h"
#include "route/slots.h"

#include <string.h>

/* A map may have as many ranges as there are slots; a range of a master with two replicas that
 * announce host names takes about 700 bytes. */
static const struct hli_reply_bounds scout_bounds = {.bytes = (size_t)16 * 1024 * 1024,
                                                     .items = HLI_SLOTS};

enum { SCOUT_INFO, SCOUT_SHARDS, SCOUT_SLOTS };

static void scout_close(struct hli_scout *scout)
{
    scout->is_out = false;
    hli_timer_clear(scout->inquiry.loop, &scout->timer);
    hli_inquiry_close(&scout->inquiry);
}

/* The connection is closed first: `done` may send the scout again. The reply outlives it. */
static void scout_return(struct hli_scout *scout, const hl_error *err)
{
    hl_error named;

    scout_close(scout);
    if (!err) {
        scout->done(scout, &scout->report, NULL);
        return;
    }
    hli_fail(&named, err->code, "%s: %s", scout->inquiry.where, err->text);
    scout->done(scout, NULL, &named);
}

static void scout_fail(struct hli_scout *scout, int code, const char *text)
{
    hl_error err;

    hli_fail(&err, code, "%s", text);
    scout_return(scout, &err);
}

static bool scout_say(struct hli_scout *scout, int index, const char *const *words)
{
    return hli_inquiry_say(&scout->inquiry, &scout->word[index].op, words);
}

static bool scout_ask(struct hli_scout *scout)
{
    const char *const info[] = {"CLUSTER", "INFO", NULL};
    const char *const shards[] = {"PUBSUB", "SHARDNUMSUB", "0", NULL};
    const char *const slots[] = {"CLUSTER", "SLOTS", NULL};

    return scout_say(scout, SCOUT_INFO, info) && scout_say(scout, SCOUT_SHARDS, shards) &&
           scout_say(scout, SCOUT_SLOTS, slots);
}

static void scout_on_opened(struct hli_inquiry *inquiry, const hl_error *err)
{
    struct hli_scout *scout = inquiry->arg;

    if (err)
        scout_return(scout, err);
    else if (!scout_ask(scout) && scout->is_out)
        scout_fail(scout, HL_ENOMEM, "out of memory");
}

static void scout_on_auth(struct hli_inquiry *inquiry, const struct hli_answer *answer)
{
    struct hli_scout *scout = inquiry->arg;

    if (scout->is_out && scout->err.code == 0)
        hli_login_judge(answer, "the server refused the user or password", &scout->err);
}

/* A node that is cut off from the majority has an old map. */
static void scout_on_info(struct hli_scout *scout, const struct hli_answer *answer)
{
    static const char epoch[] = "cluster_current_epoch:", fails[] = "cluster_state:fail";

    if (answer->verdict != HLI_REPLIED || answer->reply->kind != HLI_REPLY_STRING)
        return;
    const char *at = strstr(answer->reply->text, epoch);
    if (at)
        scout->report.epoch = strtoll(at + sizeof(epoch) - 1, NULL, 10);
    if (strstr(answer->reply->text, fails))
        scout->report.epoch = -1;
}

static void scout_on_slots(struct hli_scout *scout, const struct hli_answer *answer)
{
    if (scout->err.code < 0) {
        scout_return(scout, &scout->err);
    } else if (answer->verdict != HLI_REPLIED) {
        scout_fail(scout, answer->code, answer->text);
    } else {
        scout->report.slots = answer->reply;
        scout_return(scout, NULL);
    }
}

static void scout_word_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_scout_word *word = HLI_PART_OF(op, struct hli_scout_word, op);
    struct hli_scout *scout = word->scout;

    if (!scout->is_out || answer->verdict == HLI_UNKNOWN)
        return;
    if (word == &scout->word[SCOUT_INFO])
        scout_on_info(scout, answer);
    else if (word == &scout->word[SCOUT_SHARDS])
        scout->report.is_sharded = answer->verdict == HLI_REPLIED;
    else
        scout_on_slots(scout, answer);
}

static void scout_on_closed(struct hli_conn *conn, const hl_error *err)
{
    struct hli_scout *scout = conn->arg;

    if (!scout->is_out)
        return; /* scout_close() */
    if (scout->err.code == 0)
        scout->err = *err;
    hli_timer_set(scout->inquiry.loop, &scout->timer,
                  hli_now()); /* `done` runs from outside this close */
}

static void scout_on_timer(void *arg)
{
    struct hli_scout *scout = arg;
    char text[96];

    if (scout->err.code < 0) {
        scout_return(scout, &scout->err);
    } else if (!scout->has_login) {
        snprintf(text, sizeof(text), "no answer of the credentials callback within %lld ms",
                 (long long)scout->inquiry.settings->connect_timeout_ms);
        scout_fail(scout, HL_ECONN, text);
    } else
        scout_fail(scout, HL_ECONN, "no answer");
}

/* `done` must not run inside hli_scout_send(). */
static void scout_fail_soon(struct hli_scout *scout, int code, const char *text)
{
    hli_fail(&scout->err, code, "%s", text);
    hli_timer_set(scout->inquiry.loop, &scout->timer, hli_now());
}

static void scout_on_login(struct hli_inquiry *inquiry, const hl_error *err)
{
    struct hli_scout *scout = inquiry->arg;
    hli_ns now = hli_now(), deadline = now + scout->time;

    scout->login_took += now;
    scout->has_login = !err;
    if (err) {
        scout_fail_soon(scout, err->code, err->text);
        return;
    }
    hli_timer_set(inquiry->loop, &scout->timer, deadline);
    if (!hli_inquiry_dial(inquiry, deadline))
        scout_fail_soon(scout, HL_ENOMEM, "out of memory");
}

static const struct hli_inquiry_events scout_events = {
    .fetched = scout_on_login,
    .opened = scout_on_opened,
    .authed = scout_on_auth,
    .conn = {.closed = scout_on_closed},
};

void hli_scout_init(struct hli_scout *scout, const struct hli_dialler *dialler,
                    const hl_client_options *settings, const struct hli_url *url,
                    struct hli_logins *logins)
{
    const struct hli_inquiry_setup setup = {.dialler = dialler,
                                            .settings = settings,
                                            .url = url,
                                            .logins = logins,
                                            .purpose = HL_CREDENTIALS_SERVER,
                                            .events = &scout_events,
                                            .arg = scout};

    hli_inquiry_init(&scout->inquiry, &setup);
    scout->inquiry.conn.reader.bounds = &scout_bounds;
    scout->timer = (struct hli_timer){.run = scout_on_timer, .arg = scout};
    for (int i = 0; i < HLI_SCOUT_WORDS; i++) {
        scout->word[i].scout = scout;
        HLI_PART_IS(&scout->word[i].op, struct hli_scout_word, op);
        scout->word[i].op.done = scout_word_done;
    }
}

void hli_scout_deinit(struct hli_scout *scout)
{
    for (int i = 0; i < HLI_SCOUT_WORDS; i++)
        hli_op_wipe(&scout->word[i].op);
    hli_inquiry_deinit(&scout->inquiry);
}

void hli_scout_send(struct hli_scout *scout, const struct hli_address *address, hli_ns time)
{
    hli_ns now = hli_now();

    scout->is_out = true;
    scout->has_login = false;
    scout->time = time;
    scout->login_took = -now;
    scout->err = (hl_error)HL_ERROR_INIT;
    scout->report = (struct hli_scout_report){.epoch = -1};
    hli_timer_set(scout->inquiry.loop, &scout->timer,
                  hli_after_ms(now, scout->inquiry.settings->connect_timeout_ms));
    hli_inquiry_begin(&scout->inquiry, address);
}

void hli_scout_recall(struct hli_scout *scout)
{
    scout_close(scout);
}

void hli_scout_abandon(struct hli_scout *scout)
{
    hli_inquiry_abandon(&scout->inquiry);
}
