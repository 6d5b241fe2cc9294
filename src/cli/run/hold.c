/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/hold.h"

#include "cli/cli.h"

#include <string.h>

enum { HOLD_OUTAGE_MS = 10000 }; /* the client's default */

/* --no-server=run */
static void hold_go_without(struct run_hold *hold)
{
    cli_say("NO LOCK IS HELD: there is no server, and the command runs without it");
    hold->state = RUN_HOLD_NONE;
}

static void hold_refused(struct run_hold *hold, const hl_error *err)
{
    bool is_conflict = err->code == HL_EBUSY || err->code == HL_ETIMEDOUT;
    bool is_outage = err->code == HL_ECONN || err->code == HL_EPROTO;

    hold->state = RUN_HOLD_REFUSED;
    hold->status = hold->words->conflict_status;
    if (err->code == HL_ECANCELED && hold->is_canceled)
        return;
    if (is_conflict && !hold->words->is_verbose)
        return; /* as flock(1): the status says it */
    int status = cli_failed(err);
    if (!is_conflict)
        hold->status = status;
    if (is_outage && hold->words->no_server == RUN_NO_SERVER_RUN) {
        hold_go_without(hold);
    }
}

static void hold_event(const hl_event *event, void *arg)
{
    struct run_hold *hold = arg;

    if (event->kind == HL_EVENT_JEOPARDY) {
        cli_say("'%s' is in jeopardy: no renewal, and %lld ms are left", event->name,
                (long long)event->validity_ms);
    } else if (event->kind == HL_EVENT_LOST) {
        cli_say("'%s' is lost: %s", event->name, event->reason);
        hold->is_lost = true;
    } else {
        return;
    }
    hold->trouble = (int)event->kind;
}

static void hold_held(struct run_hold *hold)
{
    hold->state = RUN_HOLD_HELD;
    if (hold->lock && hold->words->is_fenced)
        hold->token = hl_lock_token(hold->lock, hold->owner);
    if (hold->words->is_verbose)
        cli_say("held after %.3f s", (double)(cli_now_ms() - hold->began_at) / 1000);
}

static void hold_answered(int code, const hl_error *err, void *arg);

static void hold_permit(int code, const hl_permit *permits, size_t count, const hl_error *err,
                        void *arg)
{
    struct run_hold *hold = arg;

    if (count > 0)
        hold->permit = permits[0];
    hold_answered(code, err, arg);
}

/* -w counts from the beginning. */
static int64_t hold_wait_left(const struct run_hold *hold)
{
    int64_t wait_ms = hold->words->wait_ms;
    int64_t left = wait_ms - (cli_now_ms() - hold->began_at);

    return wait_ms <= 0 ? wait_ms : left > 0 ? left : 0;
}

static void hold_acquire(struct run_hold *hold, int64_t wait_ms)
{
    hl_acquire_options options = {.size = sizeof(options),
                                  .wait_ms = wait_ms,
                                  .max_hold_ms = hold->words->max_hold_ms,
                                  .min_hold_ms = hold->words->min_hold_ms,
                                  .owner = hold->owner,
                                  .cancel = hold->cancel,
                                  .on_event = hold_event,
                                  .event_arg = hold};
    int code = hold->lock ? hl_lock_acquire_async(hold->lock, &options, hold_answered, hold)
                          : hl_permits_acquire_async(hold->permits, &options, hold_permit, hold);

    if (code < 0)
        hold_refused(hold, hl_err_last());
}

static void hold_answered(int code, const hl_error *err, void *arg)
{
    struct run_hold *hold = arg;

    if (code == 0) {
        hold_held(hold);
    } else if (code == HL_EBUSY && hold->has_asked && hold->words->wait_ms != HL_NO_WAIT) {
        hold->has_asked = false;
        cli_say("%s; waiting", err->text);
        hold_acquire(hold, hold_wait_left(hold));
    } else {
        hold_refused(hold, err);
    }
}

/* To hear who holds it, the first question does not wait. */
static void hold_begin(struct run_hold *hold)
{
    hold->has_asked = hold->words->is_verbose;
    hold_acquire(hold, hold->has_asked ? HL_NO_WAIT : hold_wait_left(hold));
}

static void hold_total(int code, const hl_error *err, void *arg)
{
    struct run_hold *hold = arg;

    if (code < 0 && code != HL_EEXIST)
        hold_refused(hold, err);
    else
        hold_begin(hold);
}

void run_hold_ask(struct run_hold *hold)
{
    if (hold->state != RUN_HOLD_ASKING)
        return;
    if (!hold->permits)
        hold_begin(hold);
    else if (hl_permits_try_set_total_async(hold->permits, hold->words->permits, 0, hold_total,
                                            hold) < 0)
        hold_refused(hold, hl_err_last());
}

static hl_lock_kind hold_kind(const struct run_words *words)
{
    return words->is_read     ? HL_LOCK_READ
           : words->is_write  ? HL_LOCK_WRITE
           : words->is_fair   ? HL_LOCK_FAIR
           : words->is_fenced ? HL_LOCK_FENCED
                              : HL_LOCK_REENTRANT;
}

static int hold_locks(struct run_hold *hold, hl_error *err)
{
    const struct run_words *words = hold->words;
    hl_lock *members[RUN_NAMES] = {NULL};
    int code = 0;

    for (size_t i = 0; i < words->name_count && code == 0; i++) {
        hl_lock_options options = HL_LOCK_OPTIONS_INIT;
        options.kind = hold_kind(words);
        options.name = words->names[i];
        code = hl_lock_new_with(hold->client, &options, &members[i], err);
    }
    if (code == 0 && words->name_count == 1) {
        hold->lock = members[0];
        return 0;
    }
    if (code == 0)
        code = hl_multi_lock_new(members, words->name_count, NULL, &hold->lock, err);
    for (size_t i = 0; i < words->name_count; i++)
        hl_lock_free(members[i]);
    return code;
}

static int hold_handles(struct run_hold *hold, hl_error *err)
{
    int code = hl_owner_new(hold->client, &hold->owner);

    if (code == 0)
        code = hl_cancel_new(&hold->cancel);
    if (code < 0) {
        *err = *hl_err_last();
        return code;
    }
    return hold->words->permits > 0
               ? hl_permits_new(hold->client, hold->words->names[0], &hold->permits, err)
               : hold_locks(hold, err);
}

/* How long it puts up with an outage: not longer than it waits at all. */
static int64_t hold_outage_ms(const struct run_words *words)
{
    if (words->no_server == RUN_NO_SERVER_WAIT)
        return words->wait_ms;
    return words->wait_ms > 0 && words->wait_ms < HOLD_OUTAGE_MS ? words->wait_ms : HOLD_OUTAGE_MS;
}

/* With --no-server=fail a server that refuses is known at once, since the client is not lazy. */
void run_hold_open(struct run_hold *hold, struct run_words *words)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;

    *hold = (struct run_hold){.words = words, .began_at = cli_now_ms()};
    options.flags = HL_CLIENT_HOLDER_INFO | HL_CLIENT_DISPATCH;
    if (words->no_server == RUN_NO_SERVER_WAIT)
        options.flags |= HL_CLIENT_LAZY;
    options.watchdog_timeout_ms = words->lease_ms;
    options.outage_timeout_ms = hold_outage_ms(words);
    hold->status = cli_server_open(&words->server, &options, &hold->client);
    if (hold->status == CLI_NO_SERVER && words->no_server == RUN_NO_SERVER_RUN) {
        hold_go_without(hold);
    } else if (hold->status != CLI_OK) {
        hold->state = RUN_HOLD_REFUSED;
    } else if (hold_handles(hold, &err) < 0) {
        hold_refused(hold, &err);
    }
}

void run_hold_cancel(struct run_hold *hold)
{
    hold->is_canceled = true;
    hl_cancel_fire(hold->cancel);
}

int run_hold_fd(const struct run_hold *hold)
{
    return hold->client ? hl_client_fd(hold->client) : -1;
}

void run_hold_dispatch(struct run_hold *hold)
{
    if (hold->client)
        hl_client_dispatch(hold->client);
}

/* After an answer in doubt the lease ends by itself. */
bool run_hold_release(struct run_hold *hold)
{
    hl_error err = HL_ERROR_INIT;
    int code = 0;

    if (hold->state != RUN_HOLD_HELD)
        return true;
    if (hold->lock)
        code = hl_lock_release_as(hold->lock, hold->owner, &err);
    else
        code = hl_permits_release(hold->permits, &hold->permit, &err);
    if (code < 0 && !hold->is_lost)
        cli_say("%s", err.text);
    return code != HL_ELOST && !hold->is_lost;
}

void run_hold_close(struct run_hold *hold, struct run_words *words)
{
    hl_lock_free(hold->lock);
    hl_permits_free(hold->permits);
    hl_owner_free(hold->owner);
    cli_server_close(&words->server, hold->client);
    hl_cancel_free(hold->cancel);
}
