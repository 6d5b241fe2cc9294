/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Calls of one request. */
#include "lease/calls/call.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/calls/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_RETRY_MS = 100 };

static bool call_check(struct hli_wait *wait, hli_ns now);
static void call_done(struct hli_op *op, const struct hli_answer *answer);

static void call_tell(struct hli_async *async, int code, const hl_error *err);

static struct hli_call *call_of(struct hli_async *async)
{
    return HLI_PART_OF(async, struct hli_call, async);
}

static void call_freed(struct hli_async *async)
{
    struct hli_call *call = call_of(async);
    hl_client *client = call->client;

    hli_op_deinit(&call->op);
    hli_mutex_deinit(&call->mutex);
    if (call->name)
        call->drop_name(call->name);
    free(call);
    hli_client_unref(client);
}

struct hli_call *hli_call_new(const struct hli_call_kind *kind, hl_client *client)
{
    struct hli_call *call = calloc(1, kind->size > 0 ? kind->size : sizeof(struct hli_call));

    if (!call)
        return NULL;
    hli_async_init(&call->async, &call->wait, call_freed);
    HLI_PART_IS(&call->async, struct hli_call, async);
    call->async.tell = call_tell;
    hli_client_ref(client);
    call->client = client;
    call->kind = kind;
    HLI_PART_IS(&call->op, struct hli_call, op);
    call->op.done = call_done;
    hli_mutex_init(&call->mutex);
    hli_call_set_timeout(call, -1);
    return call;
}

void hli_call_set_timeout(struct hli_call *call, int64_t timeout_ms)
{
    struct hli_wait *wait = &call->wait;

    hli_wait_init(wait, call->client, timeout_ms, &call->async.err);
    HLI_PART_IS(wait, struct hli_call, wait);
    wait->check = call_check;
    wait->check_at = wait->first_check_at = hli_earlier(
        wait->deadline, hli_after_ms(wait->started, call->client->settings.outage_timeout_ms));
}

static void call_unref(struct hli_call *call)
{
    hli_async_unref(&call->async);
}

int hli_call_fail(struct hli_call *call, int code, const char *text)
{
    hl_error *err = &call->async.err;
    char shown[96];

    call->reason = hli_answer_reason(code, text);
    if (call->about.length == 0)
        return hli_fail(err, code, "%s: %s%s", call->kind->verb, text, hli_answer_advice(text));
    hli_error_escape(shown, sizeof(shown), call->about.data, call->about.length);
    return hli_fail(err, code, "%s '%s': %s%s", call->kind->verb, shown, text,
                    hli_answer_advice(text));
}

/* Sets the result. True: this thread is to wake the caller. With the mutex. */
static bool call_finish(struct hli_call *call, int code)
{
    if (call->wait.is_finished)
        return false;
    call->wait.is_finished = true;
    call->wait.code = code;
    return true;
}

/* The code of a call without an answer: a change that was sent is in doubt, because it may have run
 * or may run yet. With the mutex. */
static int call_unheard(const struct hli_call *call, int code)
{
    return call->kind->changes_data && (call->may_have_run || call->is_in_flight) ? HL_EINDOUBT
                                                                                  : code;
}

static void call_end(struct hli_call *call, int code, const char *text)
{
    hli_mutex_lock(&call->mutex);
    call->is_in_flight = false;
    code = call_unheard(call, code);
    bool ends = call_finish(call, code);
    if (ends && code < 0)
        hli_call_fail(call, code, text);
    hli_mutex_unlock(&call->mutex);
    if (ends)
        hli_wait_wake(&call->wait);
}

static struct hli_link *call_link(const struct hli_call *call)
{
    return call->node ? call->node : hli_client_link(call->client, call->slot, call->lane);
}

/* Of a call for one node: is that still at the address that was asked for? */
static bool call_has_node(const struct hli_call *call)
{
    char where[HLI_WHERE_SIZE];

    hli_link_where(call->node, where);
    return strcmp(where, call->node_where) == 0;
}

static bool call_time_out(struct hli_call *call, hli_ns now)
{
    char text[HLI_WHERE_SIZE + 64], where[HLI_WHERE_SIZE];
    int code = call->problem;

    hli_link_where(call_link(call), where);

    if (code < 0)
        snprintf(text, sizeof(text), "%s", call->problem_text);
    else
        snprintf(text, sizeof(text), "no answer from %s within %lld ms", where,
                 (long long)((now - call->wait.started) / 1000000));
    if (code == 0)
        code = now >= call->wait.deadline ? HL_ETIMEDOUT : HL_ECONN;
    code = call_unheard(call, code);
    hli_call_fail(call, code, text);
    return call_finish(call, code);
}

static bool call_check(struct hli_wait *wait, hli_ns now)
{
    struct hli_call *call = HLI_PART_OF(wait, struct hli_call, wait);
    hli_ns outage_at = hli_after_ms(wait->started, call->client->settings.outage_timeout_ms);
    bool ends = false;

    hli_mutex_lock(&call->mutex);
    if (!wait->is_finished && (now >= wait->deadline || now >= outage_at))
        ends = call_time_out(call, now);
    bool goes_on = !wait->is_finished;
    wait->check_at = hli_earlier(wait->deadline, outage_at);
    hli_mutex_unlock(&call->mutex);
    if (ends)
        hli_wait_wake(wait);
    return goes_on;
}

static bool call_is_over(struct hli_call *call)
{
    hli_mutex_lock(&call->mutex);
    bool over = call->wait.is_finished;
    hli_mutex_unlock(&call->mutex);
    return over;
}

static int64_t calls_pause_ms(const hl_client *client)
{
    int64_t pause_ms = (int64_t)CALL_RETRY_MS << (client->refusals < 6 ? client->refusals : 6);

    return pause_ms < client->settings.poll_ms ? pause_ms : client->settings.poll_ms;
}

/* Puts the call into the client's list, with the op's reference. The calls of the list are sent
 * together, after a pause that grows up to poll_ms while the server refuses some: it is in trouble,
 * and the calls may be thousands. A refusal long after the last round begins anew. */
static void call_wait_on(struct hli_call *call, bool was_refused)
{
    hl_client *client = call->client;
    hli_ns now = hli_now();

    hli_mutex_lock(&client->calls_mutex);
    TAILQ_INSERT_TAIL(&client->calls, call, link);
    if (was_refused && now >= hli_after_ms(client->retried_at, calls_pause_ms(client)))
        client->refusals = 0;
    client->were_refused = client->were_refused || was_refused;
    int64_t pause_ms = calls_pause_ms(client);
    hli_mutex_unlock(&client->calls_mutex);
    hli_timer_set_earlier(client->loop, &client->calls_timer, hli_after_ms(now, pause_ms));
}

/* With the op's reference. What may be early is decided for the server's present term. */
static void call_send_op(struct hli_call *call)
{
    struct hli_link *link = call_link(call);

    if (call->kind->is_foreign)
        link = hli_link_foreign(link);
    if (!link) {
        call_end(call, HL_ENOMEM, hl_err_text(HL_ENOMEM));
        call_unref(call);
        return;
    }

    if (call->node && !call_has_node(call)) {
        call_end(call, HL_ENOENT, "the node is not in use any more");
        call_unref(call);
        return;
    }
    call->op.term = call->kind->is_early ? atomic_load(&hli_link_term(link)->number) : 0;
    if (call->kind->is_early && call->kind->is_early(call)) {
        call_wait_on(call, false);
        return;
    }
    hli_mutex_lock(&call->mutex);
    call->is_in_flight = true;
    hli_mutex_unlock(&call->mutex);
    hli_link_send(link, &call->op);
}

static void call_send(struct hli_call *call)
{
    hli_async_ref(&call->async); /* the op's */
    call_send_op(call);
}

/* Notes the problem; the call waits for the link, or for a pause to end. */
static void call_retry_later(struct hli_call *call, const struct hli_answer *answer)
{
    hli_mutex_lock(&call->mutex);
    call->is_in_flight = false;
    if (answer->verdict == HLI_UNKNOWN && !call->may_have_run) {
        call->may_have_run = true;
        call->ran_at = call->op.sent_at;
    }
    call->problem = answer->code;
    snprintf(call->problem_text, sizeof(call->problem_text), "%s", answer->text);
    hli_mutex_unlock(&call->mutex);
    call_wait_on(call, answer->verdict == HLI_REFUSED);
}

/* Handles one call of the list. A change is not sent when the call's time is nearly over: still
 * under way at the end, it would be in doubt, which is worse than the problem known by now. No copy
 * may be sent when Redis may have forgotten the note by which it recognises a copy. */
static void call_retry(struct hli_call *call)
{
    hli_ns now = hli_now();

    hli_mutex_lock(&call->mutex);
    bool is_over = call->wait.is_finished;
    bool is_forgotten = call->may_have_run && call->repeat_ms > 0 &&
                        now >= hli_after_ms(call->ran_at, call->repeat_ms);
    bool is_late = !is_over && call->kind->changes_data && /* over, its check is the caller's */
                   hli_after_ms(now, CALL_RETRY_MS) >= call->wait.check_at;
    hli_mutex_unlock(&call->mutex);
    if (atomic_load(&call->client->is_closed)) {
        call_end(call, HL_ECANCELED, "the client is closed");
    } else if (is_forgotten) {
        call_end(call, HL_EINDOUBT, "no answer, and it cannot be repeated any more");
    } else if (is_late) {
        hli_async_ref(&call->async); /* the list's */
        call_wait_on(call, false);
    } else if (!is_over) {
        call_send(call);
    }
}

static const char *call_text(const struct hli_call *call, int code)
{
    return code == call->kind->no && call->kind->no_text ? call->kind->no_text : hl_err_text(code);
}

int hli_call_read_done(struct hli_call *call, const struct hli_reply *reply)
{
    int64_t status = -2;

    hli_reply_integer_at(reply, 0, &status);
    switch (status) {
    case 1:
        return HL_OK;
    case 0:
        return call->kind->no < 0 ? call->kind->no : HL_ESERVER;
    case -1:
        return HL_ELOST;
    default:
        return HL_ESERVER;
    }
}

/* A change that has run, and that too few replicas have. */
static int call_lacks_replicas(struct hli_call *call, const struct hli_answer *answer)
{
    char text[HLI_REPLICAS_TEXT];
    int code = hli_replicas_write(call->client, &call->op, answer, text);

    call->is_unconfirmed = true;
    hli_count(&call->client->counters.unconfirmed);
    return hli_call_fail(call, code, text);
}

static void call_read(struct hli_call *call, const struct hli_answer *answer)
{
    hli_mutex_lock(&call->mutex);
    bool ends = false;
    if (!call->wait.is_finished) {
        int code = call->kind->read ? call->kind->read(call, answer->reply)
                                    : hli_call_read_done(call, answer->reply);
        if (code == HL_OK && call->op.replicas > 0 && !hli_op_is_confirmed(&call->op, answer))
            code = call_lacks_replicas(call, answer);
        if (code < 0 && call->async.err.code != code)
            hli_call_fail(call, code, call_text(call, code));
        ends = call_finish(call, code);
    }
    hli_mutex_unlock(&call->mutex);
    if (ends)
        hli_wait_wake(&call->wait);
}

/* A command of the program's own goes to where the map says, when that was read again: its answer
 * may be made by a script. What is for one node is for no other. */
static bool call_is_elsewhere(const struct hli_call *call, const struct hli_answer *answer)
{
    return call->kind->is_foreign && !call->node &&
           (hli_answer_is(answer, "MOVED") || hli_answer_is(answer, "ASK"));
}

static bool call_may_retry(const struct hli_call *call, const struct hli_answer *answer)
{
    switch (answer->verdict) {
    case HLI_BOUNCED:
        return call_is_elsewhere(call, answer);
    case HLI_REFUSED:
        return !call->kind->is_foreign || hli_answer_is_known(answer);
    case HLI_UNSENT:
        return answer->code != HL_EDENIED;
    case HLI_UNKNOWN:
        return call->kind->is_repeatable;
    default:
        return false;
    }
}

/* May it be sent again at once? A script of the caller's own is not loaded by the library. */
static bool call_may_go_again(const struct hli_call *call, const struct hli_answer *answer)
{
    return answer->verdict == HLI_BOUNCED && !call->kind->is_foreign;
}

static int call_failure(const struct hli_call *call, const struct hli_answer *answer)
{
    if (answer->verdict == HLI_UNKNOWN)
        return HL_EINDOUBT;
    bool is_denied = answer->verdict == HLI_FAILED && hli_answer_is(answer, "NOPERM");
    return is_denied && call->kind->may_be_denied ? HL_OK : answer->code;
}

static void call_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_call *call = HLI_PART_OF(op, struct hli_call, op);

    if (answer->verdict == HLI_REPLIED) {
        call_read(call, answer);
    } else if (!call_is_over(call)) {
        if (call_may_go_again(call, answer)) {
            call_send_op(call);
            return;
        }
        if (call_may_retry(call, answer)) {
            call_retry_later(call, answer);
            return;
        }
        call_end(call, call_failure(call, answer), answer->text);
    }
    call_unref(call); /* the op's */
}

/* The first that waits for this link; NULL: for any. */
static struct hli_call *calls_take(hl_client *client, const struct hli_link *link)
{
    struct hli_call *call;

    hli_mutex_lock(&client->calls_mutex);
    TAILQ_FOREACH (call, &client->calls, link)
        if (!link || hli_link_fails_with(call_link(call), link))
            break;
    if (call)
        TAILQ_REMOVE(&client->calls, call, link);
    hli_mutex_unlock(&client->calls_mutex);
    return call;
}

/* Handles as many calls as the list has at the begin, because calls that cannot be sent return to
 * it. */
void hli_calls_retry(hl_client *client)
{
    size_t count = 0;
    struct hli_call *call;

    hli_mutex_lock(&client->calls_mutex);
    TAILQ_FOREACH (call, &client->calls, link)
        count++;
    client->refusals = client->were_refused ? client->refusals + 1 : 0;
    client->were_refused = false;
    client->retried_at = hli_now();
    hli_mutex_unlock(&client->calls_mutex);
    for (; count > 0 && (call = calls_take(client, NULL)); count--) {
        call_retry(call);
        call_unref(call); /* the list's, which was the op's */
    }
}

void hli_calls_fail(hl_client *client, const struct hli_link *link, int code, const char *text)
{
    struct hli_call *call;

    while ((call = calls_take(client, link))) {
        call_end(call, code, text);
        call_unref(call); /* the list's, which was the op's */
    }
}

static void call_settle(struct hli_call *call)
{
    if (call->kind->settle)
        call->kind->settle(call, call->wait.code);
    if (call->wait.code < 0)
        hli_count_failure(call->client, call->kind->counts_as, call->wait.code, call->reason);
}

void hli_call_overrule(struct hli_call *call, int code, const char *text)
{
    call->wait.code = hli_call_fail(call, code, text);
}

static int call_block(struct hli_call *call)
{
    const struct hli_completion *completion = &call->async.completion;
    int cancelability = hli_cancelability_off();

    if (!call->kind->is_foreign)
        hli_wait_lead(&call->wait, call_link(call));
    call_send(call);
    hli_wait_block(&call->wait);
    hli_cancelability_restore(cancelability);
    call_settle(call);
    int code = call->wait.code;
    if (code < 0 && completion->err)
        *completion->err = call->async.err;
    if (code == HL_OK && completion->ret_count)
        *completion->ret_count = call->count;
    call_unref(call);
    return code;
}

static void call_finished(struct hli_wait *wait)
{
    call_settle(HLI_PART_OF(wait, struct hli_call, wait));
    hli_async_finished(wait);
}

static void call_start(struct hli_async *async)
{
    call_send(call_of(async));
}

static void call_tell(struct hli_async *async, int code, const hl_error *err)
{
    const struct hli_completion *completion = &async->completion;
    int64_t count = code < 0 ? 0 : call_of(async)->count;

    if (completion->done)
        completion->done(code, err, completion->arg);
    else if (completion->counted)
        completion->counted(code, count, err, completion->arg);
    else
        completion->token(code, (uint64_t)count, err, completion->arg);
}

static int call_prepare(struct hli_call *call, const void *what)
{
    struct hli_args args;
    int rc = call->kind->prepare(call, &args, what);

    if (rc < 0)
        return rc;
    rc = hli_args_end(&args, &call->op);
    if (rc == 0 && call->kind->is_foreign)
        rc = hli_op_add_fence(&call->op);
    call->op.stays = call->node != NULL;
    return rc < 0 ? hli_call_fail(call, HL_ENOMEM, "out of memory; nothing was sent") : 0;
}

/* Ends a call that does not begin, and whose error is set. */
static int call_refuse(struct hli_call *call, int code)
{
    call->wait.code = code;
    call_settle(call);
    code = call->wait.code;
    hli_fail(call->async.completion.err, code, "%s", call->async.err.text);
    call_unref(call);
    return code;
}

int hli_call_run(struct hli_call *call, const void *what, const struct hli_completion *completion)
{
    if (!call)
        return hli_no_memory(completion->err);
    call->async.completion = *completion;
    int rc = call_prepare(call, what);
    if (rc < 0)
        return call_refuse(call, rc);
    if (!completion->is_async)
        return call_block(call);
    call->wait.finished = call_finished;
    hli_async_ref(&call->async); /* for call_refuse() */
    rc = hli_async_begin(&call->async, call_start);
    if (rc < 0)
        return call_refuse(call, hli_call_fail(call, rc, hl_err_text(rc)));
    call_unref(call);
    return 0;
}

int hli_client_run(hl_client *client, const struct hli_call_kind *kind, const void *what,
                   const struct hli_completion *completion)
{
    int rc = hli_client_enter_call(client, completion);

    if (rc < 0)
        return rc;
    rc = hli_call_run(hli_call_new(kind, client), what, completion);
    hli_client_leave(client);
    return rc;
}
