/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Calls of one request. */
#include "lease/call.h"

#include "base/check.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { CALL_RETRY_MS = 100 };

static bool call_look(struct hli_wait *wait, hli_ns now);
static void call_done(struct hli_op *op, const struct hli_answer *answer);

static void call_look_ended(struct hli_wait *wait)
{
    hli_call_unref(HLI_OF(wait, struct hli_call, wait)); /* the timer's */
}

void hli_call_init(struct hli_call *call, hl_client *client, const char *verb, int64_t timeout_ms)
{
    hli_ref_init(&call->ref);
    hli_client_ref(client);
    call->client = client;
    call->verb = verb;
    call->op.done = call_done;
    pthread_mutex_init(&call->mutex, NULL);
    hli_wait_init(&call->wait, client, timeout_ms, &call->err);
    call->wait.look = call_look;
    call->wait.looked = call_look_ended;
    call->wait.look_at = call->wait.first_look_at = hli_earlier(
        call->wait.deadline, hli_after_ms(call->wait.started, client->settings.outage_timeout_ms));
}

void hli_call_ref(struct hli_call *call)
{
    hli_ref_take(&call->ref);
}

void hli_call_unref(struct hli_call *call)
{
    if (!hli_ref_drop(&call->ref))
        return;
    hl_client *client = call->client;
    hli_op_deinit(&call->op);
    pthread_mutex_destroy(&call->mutex);
    call->freed(call);
    hli_client_unref(client);
}

static void call_fail_text(struct hli_call *call, int code, const char *text)
{
    hli_fail(&call->err, code, "%s: %s", call->verb, text);
}

/* With the mutex; true for the one who is to wake the caller. */
static bool call_finish(struct hli_call *call, int code)
{
    if (call->wait.is_finished)
        return false;
    call->wait.is_finished = true;
    call->wait.code = code;
    return true;
}

/* Without an answer: a deed that was sent may be done, or be done yet. With the mutex. */
static int call_unheard(const struct hli_call *call, int code)
{
    return call->is_deed && (call->may_have_run || call->is_in_flight) ? HL_EUNKNOWN : code;
}

static void call_end(struct hli_call *call, int code, const char *text)
{
    pthread_mutex_lock(&call->mutex);
    call->is_in_flight = false;
    code = call_unheard(call, code);
    bool ends = call_finish(call, code);
    if (ends && code < 0)
        call_fail_text(call, code, text);
    pthread_mutex_unlock(&call->mutex);
    if (ends)
        hli_wait_wake(&call->wait);
}

static bool call_time_out(struct hli_call *call, hli_ns now)
{
    char text[192];
    int code = call->problem;

    if (code < 0)
        snprintf(text, sizeof(text), "%s", call->problem_text);
    else
        snprintf(text, sizeof(text), "no answer from %s within %lld ms",
                 hli_link_where(call->client->link),
                 (long long)((now - call->wait.started) / 1000000));
    if (code == 0)
        code = now >= call->wait.deadline ? HL_ETIMEDOUT : HL_ECONN;
    code = call_unheard(call, code);
    call_fail_text(call, code, text);
    return call_finish(call, code);
}

static bool call_look(struct hli_wait *wait, hli_ns now)
{
    struct hli_call *call = HLI_OF(wait, struct hli_call, wait);
    hli_ns outage_at = hli_after_ms(wait->started, call->client->settings.outage_timeout_ms);
    bool ends = false;

    pthread_mutex_lock(&call->mutex);
    if (!wait->is_finished && (now >= wait->deadline || now >= outage_at))
        ends = call_time_out(call, now);
    bool goes_on = !wait->is_finished;
    wait->look_at = hli_earlier(wait->deadline, outage_at);
    pthread_mutex_unlock(&call->mutex);
    if (ends)
        hli_wait_wake(wait);
    return goes_on;
}

static bool call_is_over(struct hli_call *call)
{
    pthread_mutex_lock(&call->mutex);
    bool over = call->wait.is_finished;
    pthread_mutex_unlock(&call->mutex);
    return over;
}

/* In the list, with the op's reference. */
static void call_wait_on(struct hli_call *call)
{
    hl_client *client = call->client;

    pthread_mutex_lock(&client->calls_mutex);
    TAILQ_INSERT_TAIL(&client->calls, call, link);
    pthread_mutex_unlock(&client->calls_mutex);
    hli_timer_set_earlier(client->loop, &client->calls_timer,
                          hli_after_ms(hli_now(), CALL_RETRY_MS));
}

static void call_send(struct hli_call *call)
{
    hli_call_ref(call); /* the op's */
    if (call->is_early && call->is_early(call)) {
        call_wait_on(call);
        return;
    }
    pthread_mutex_lock(&call->mutex);
    call->is_in_flight = true;
    pthread_mutex_unlock(&call->mutex);
    hli_link_send(call->client->link, &call->op);
}

/* Waits for the link, or for a pause. */
static void call_retry_later(struct hli_call *call, const struct hli_answer *answer)
{
    pthread_mutex_lock(&call->mutex);
    call->is_in_flight = false;
    if (answer->verdict == HLI_UNKNOWN && !call->may_have_run) {
        call->may_have_run = true;
        call->ran_at = call->op.sent_at;
    }
    call->problem = answer->code;
    snprintf(call->problem_text, sizeof(call->problem_text), "%s", answer->text);
    pthread_mutex_unlock(&call->mutex);
    call_wait_on(call);
}

/* A deed is not sent any more when its time is nearly over: under way at its end it would be
 * unknown, which is worse than what is known by now. */
static bool call_is_too_late(struct hli_call *call)
{
    pthread_mutex_lock(&call->mutex);
    bool is_late = call->is_deed && hli_after_ms(hli_now(), CALL_RETRY_MS) >= call->wait.look_at;
    pthread_mutex_unlock(&call->mutex);
    return is_late;
}

/* What would know a copy of it has been forgotten by now, or may be before it runs. */
static bool call_is_forgotten(struct hli_call *call)
{
    pthread_mutex_lock(&call->mutex);
    bool is_forgotten = call->may_have_run && call->repeat_ms > 0 &&
                        hli_now() >= hli_after_ms(call->ran_at, call->repeat_ms);
    pthread_mutex_unlock(&call->mutex);
    return is_forgotten;
}

static void call_read(struct hli_call *call, const struct hli_reply *reply)
{
    pthread_mutex_lock(&call->mutex);
    bool ends = false;
    if (!call->wait.is_finished) {
        int code = call->read(call, reply);
        if (code < 0 && call->err.code != code)
            call_fail_text(call, code, hl_err_text(code));
        ends = call_finish(call, code);
    }
    pthread_mutex_unlock(&call->mutex);
    if (ends)
        hli_wait_wake(&call->wait);
}

static bool call_may_retry(const struct hli_call *call, const struct hli_answer *answer)
{
    switch (answer->verdict) {
    case HLI_REFUSED:
        return true;
    case HLI_UNSENT:
        return answer->code != HL_EDENIED;
    case HLI_UNKNOWN:
        return call->is_repeatable;
    default:
        return false;
    }
}

static void call_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_call *call = HLI_OF(op, struct hli_call, op);

    if (answer->verdict == HLI_REPLIED) {
        call_read(call, answer->reply);
    } else if (!call_is_over(call)) {
        if (answer->verdict == HLI_BOUNCED) {
            hli_link_send(call->client->link, op);
            return;
        }
        if (call_may_retry(call, answer)) {
            call_retry_later(call, answer);
            return;
        }
        call_end(call, answer->verdict == HLI_UNKNOWN ? HL_EUNKNOWN : answer->code, answer->text);
    }
    hli_call_unref(call); /* the op's */
}

static struct hli_call *calls_take(hl_client *client)
{
    pthread_mutex_lock(&client->calls_mutex);
    struct hli_call *call = TAILQ_FIRST(&client->calls);
    if (call)
        TAILQ_REMOVE(&client->calls, call, link);
    pthread_mutex_unlock(&client->calls_mutex);
    return call;
}

/* As many as there are now, for those that cannot be sent come back. */
void hli_calls_retry(hl_client *client)
{
    size_t count = 0;
    struct hli_call *call;

    pthread_mutex_lock(&client->calls_mutex);
    TAILQ_FOREACH (call, &client->calls, link)
        count++;
    pthread_mutex_unlock(&client->calls_mutex);
    for (; count > 0 && (call = calls_take(client)); count--) {
        if (atomic_load(&client->is_closed))
            call_end(call, HL_ECANCELED, "the client is closed");
        else if (call_is_forgotten(call))
            call_end(call, HL_EUNKNOWN, "no answer, and it cannot be repeated any more");
        else if (!call_is_over(call) && call_is_too_late(call)) {
            call_wait_on(call);
            continue;
        } else if (!call_is_over(call))
            call_send(call);
        hli_call_unref(call); /* the list's, once the op's */
    }
}

void hli_calls_fail(hl_client *client, int code, const char *text)
{
    struct hli_call *call;

    while ((call = calls_take(client))) {
        call_end(call, code, text);
        hli_call_unref(call); /* the list's, once the op's */
    }
}

int hli_call_block(struct hli_call *call, hl_error *err)
{
    int cancelability = hli_cancelability_off();

    hli_wait_will_block(&call->wait);
    call_send(call);
    int code = hli_wait_block(&call->wait);
    hli_cancelability_restore(cancelability);
    if (code < 0 && err)
        *err = call->err;
    return code;
}

static void call_run(struct hli_callback *callback)
{
    struct hli_call *call = HLI_OF(callback, struct hli_call, callback);

    if (hli_wait_end(&call->wait))
        hli_call_unref(call); /* the timer's */
    call->tell(call);
    hli_call_unref(call); /* the completion's */
}

static void call_finished(struct hli_wait *wait)
{
    struct hli_call *call = HLI_OF(wait, struct hli_call, wait);

    if (call->settle)
        call->settle(call);
    hli_callbacks_post(&wait->client->callbacks, &call->callback);
}

int hli_call_begin(struct hli_call *call, void (*tell)(struct hli_call *call))
{
    if (hli_callbacks_want(&call->client->callbacks) < 0) {
        hli_call_unref(call);
        return HL_ENOMEM;
    }
    call->tell = tell;
    call->callback.run = call_run;
    call->wait.finished = call_finished;
    hli_call_ref(call); /* the timer's */
    hli_call_ref(call); /* this call's; the caller's is the completion's from now on */
    int cancelability = hli_cancelability_off();
    call_send(call);
    if (!hli_wait_look_after(&call->wait))
        hli_call_unref(call);
    hli_call_unref(call);
    hli_cancelability_restore(cancelability);
    return 0;
}
