/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Each public call, with each of its own allocations failing once: it ends with a code that its
 * header names, nothing is held that its caller does not know of, and the next call works.
 */
#include "memory_kit.h"

/* A call under test, with what it works on, new for each failure. */
struct subject {
    int (*call)(struct subject *subject);
    bool wants_hold;   /* by the thread and by the owner, of two locks */
    bool leaves_holds; /* when it failed, what was held still is */
    bool may_be_unknown;
    hl_client *client;
    hl_lock *lock, *owned;
    hl_owner *owner;
    hl_error err;
    int code;
    int nth; /* of the first call of a thread: the allocation that fails */
};

static void subject_prepare(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    subject->client = open_client(&options);
    subject->lock = new_lock(subject->client, "subject");
    subject->owned = new_lock(subject->client, "owned");
    expect_ok(hl_owner_new(subject->client, &subject->owner));
    subject->err = (hl_error)HL_ERROR_INIT;
    atomic_store(&completions, 0);
    if (subject->wants_hold) {
        hl_acquire_options owned = HL_ACQUIRE_OPTIONS_INIT;
        owned.wait_ms = HL_NO_WAIT;
        owned.owner = subject->owner;
        expect_ok(hl_lock_acquire(subject->lock, ERR));
        expect_ok(hl_lock_acquire_with(subject->owned, &owned, ERR));
    }
}

static void subject_run(void *arg)
{
    struct subject *subject = arg;
    subject->code = subject->call(subject);
}

static void inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    (void)info;
    completed(code, err, arg);
}

static void subject_end(struct subject *subject)
{
    kit_try_out(subject->client, "afterwards");
    free_lock(subject->lock);
    free_lock(subject->owned);
    free_owner(subject->owner);
    close_client(subject->client);
    kit_expect_no_threads();
    redis_do(server, "DEL subject owned"); /* holds that close left to their lease */
}

/* 0 or HL_ENOMEM, with words; after the latter everything is as it was before. What changes
 * something and was sent may also be HL_EINDOUBT, if its answer could not be read. */
static void subject_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    check_msg(subject->code == HL_OK || (failed && subject->code == HL_ENOMEM) ||
                  (failed && subject->code == HL_EINDOUBT && subject->may_be_unknown),
              "the call ended with %s (%s)", hl_err_name(subject->code), subject->err.text);
    if (subject->code == HL_ENOMEM && subject->wants_hold) {
        check(hl_lock_is_held(subject->lock, NULL));
        check(hl_lock_is_held(subject->owned, subject->owner));
    } else if (subject->code == HL_ENOMEM) {
        check_int(redis_int(server, "EXISTS subject owned"), 0);
        check_int(stats_of(subject->client).holds_now, 0);
    }
    subject_end(subject);
}

static long sweep_subject(struct subject subject)
{
    return sweep_without_leaks(&(struct failing_scenario){.scope = FAILING_THREAD,
                                                          .prepare = subject_prepare,
                                                          .run = subject_run,
                                                          .verify = subject_verify,
                                                          .arg = &subject});
}

static long sweep(int (*call)(struct subject *), bool wants_hold)
{
    return sweep_subject((struct subject){.call = call, .wants_hold = wants_hold});
}

/* Of a release the answer may find no memory, and its copy finds nothing. */
static long sweep_released(int (*call)(struct subject *))
{
    return sweep_subject(
        (struct subject){.call = call, .wants_hold = true, .may_be_unknown = true});
}

static int acquire(struct subject *subject)
{
    return hl_lock_acquire(subject->lock, &subject->err);
}

static int try_acquire(struct subject *subject)
{
    return hl_lock_try_acquire(subject->lock, &subject->err);
}

static int acquire_for(struct subject *subject)
{
    return hl_lock_acquire_for(subject->lock, slow_ms(20000), &subject->err);
}

static int acquire_with_all(struct subject *subject)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = slow_ms(20000);
    options.lease_ms = slow_ms(20000);
    options.max_hold_ms = slow_ms(30000);
    options.on_event = ignore_event; /* the first to want callbacks */
    return hl_lock_acquire_with(subject->owned, &options, &subject->err);
}

Test(memory_calls, acquire_holds_or_has_sent_nothing, .init = memory_up_tcp, .fini = memory_down)
{
    check(sweep(acquire, false) >= 2);
    check(sweep(try_acquire, false) >= 2);
    check(sweep(acquire_for, false) >= 2);
    check(sweep(acquire_with_all, false) >= 2);
}

static void *acquire_anew(void *arg)
{
    struct subject *subject = arg; /* a thread that the library has never seen */
    failing_malloc_arm(FAILING_THREAD, subject->nth);
    subject->code = hl_lock_acquire(subject->lock, &subject->err);
    subject->leaves_holds = failing_malloc_disarm();
    if (subject->code == HL_OK)
        kit_release(subject->lock, NULL);
    return NULL;
}

Test(memory_calls, the_first_call_of_a_thread_makes_its_owner_or_fails, .init = memory_up_tcp,
     .fini = memory_down)
{
    struct subject subject = {.leaves_holds = true};
    int n = 0;
    for (; subject.leaves_holds; n++) {
        subject_prepare(&subject);
        subject.nth = n;
        pthread_join(kit_thread(acquire_anew, &subject), NULL);
        subject_verify(&subject, subject.leaves_holds);
    }
    check(n >= 3); /* and one more, if the thread reads its answer */
}

static int nest(struct subject *subject)
{
    int code = hl_lock_acquire(subject->lock, &subject->err);
    if (code == HL_OK)
        check_int(hl_lock_hold_count(subject->lock, NULL), 2);
    else
        check_int(hl_lock_hold_count(subject->lock, NULL), 1);
    return code;
}

static int nest_longer(struct subject *subject)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    options.lease_ms = slow_ms(60000);
    return hl_lock_acquire_with(subject->lock, &options, &subject->err);
}

static int release(struct subject *subject)
{
    return hl_lock_release(subject->lock, &subject->err);
}

static int release_as(struct subject *subject)
{
    return hl_lock_release_as(subject->owned, subject->owner, &subject->err);
}

static int release_async(struct subject *subject)
{
    return await_completion(hl_lock_release_async(subject->owned, subject->owner, completed, NULL));
}

Test(memory_calls, nesting_and_releasing_succeed_or_leave_the_hold, .init = memory_up_tcp,
     .fini = memory_down)
{
    check_int(sweep(nest, true), 0); /* it is local, and its count is shown behind it */
    check(sweep(nest_longer, true) >= 1);
    int least = handle_retains() ? 0 : 1; /* a retained lock is released later */
    check(sweep_released(release) >= least);
    check(sweep_released(release_as) >= least);
    check(sweep_released(release_async) >= least);
}

static int acquire_async(struct subject *subject)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.owner = subject->owner;
    options.wait_ms = slow_ms(20000);
    options.on_event = ignore_event; /* before the completion, it wants callbacks */
    return await_completion(hl_lock_acquire_async(subject->lock, &options, completed, NULL));
}

static int inspect_async(struct subject *subject)
{
    return await_completion(hl_lock_inspect_async(subject->lock, inspected, NULL));
}

static int inspect(struct subject *subject)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    return hl_lock_inspect(subject->lock, &info, &subject->err);
}

static int force_release(struct subject *subject)
{
    return hl_lock_force_release(subject->lock, &subject->err);
}

static int force_release_async(struct subject *subject)
{
    return await_completion(hl_lock_force_release_async(subject->lock, completed, NULL));
}

static int ping(struct subject *subject)
{
    return hl_client_ping(subject->client, -1, &subject->err);
}

static const char *const command_words[] = {"ECHO", "words"};
static const hl_command command_that_reads = {
    .size = sizeof(hl_command), .words = command_words, .word_count = 2, .flags = HL_COMMAND_READS};

static int command(struct subject *subject)
{
    hl_command changes = command_that_reads;
    hl_reply *reply = NULL;
    changes.flags = 0;
    int code = hl_client_command(subject->client, &changes, &reply, &subject->err);
    check((code == HL_OK) == (reply != NULL));
    hl_reply_free(reply);
    return code;
}

static int read_command(struct subject *subject)
{
    hl_reply *reply = NULL;
    int code = hl_client_command(subject->client, &command_that_reads, &reply, &subject->err);
    hl_reply_free(reply);
    return code;
}

static void replied(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    check((code == HL_OK) == (reply != NULL));
    completed(code, err, arg);
}

static int command_async(struct subject *subject)
{
    return await_completion(
        hl_client_command_async(subject->client, &command_that_reads, replied, NULL));
}

static int stats(struct subject *subject)
{
    hl_stats counted = {.size = sizeof counted};
    return hl_client_stats(subject->client, &counted);
}

Test(memory_calls, questions_are_answered_or_fail, .init = memory_up_tcp, .fini = memory_down)
{
    check(sweep(acquire_async, false) >= 3);
    check(sweep(inspect, false) >= 2);
    check(sweep(inspect_async, false) >= 2);
    struct subject forced = {.call = force_release, .wants_hold = true, .may_be_unknown = true};
    check(sweep_subject(forced) >= 2); /* the answer may find no memory, and it is not repeated */
    check(sweep(force_release_async, true) >= 2);
    check(sweep(ping, false) >= 2);
    check(sweep(read_command, false) >= 2);
    check(sweep(command_async, false) >= 2);
    check(sweep_subject((struct subject){.call = command, .may_be_unknown = true}) >= 2);
    check_int(sweep(stats, false), 0);
}

enum { UPDATED_MS = 600000 };

/* A lease that was refused does not count. */
static int check_lease(int code, const hl_lock *lock, hl_owner *owner)
{
    int64_t left_ms = hl_lock_validity_ms(lock, owner);
    check(code == HL_OK ? left_ms > UPDATED_MS / 2 : left_ms < UPDATED_MS / 2);
    return code;
}

static int update_lease(struct subject *subject)
{
    int code = hl_lock_update_lease(subject->lock, NULL, UPDATED_MS, &subject->err);
    return check_lease(code, subject->lock, NULL);
}

static int update_lease_async(struct subject *subject)
{
    int code = await_completion(
        hl_lock_update_lease_async(subject->owned, subject->owner, UPDATED_MS, completed, NULL));
    return check_lease(code, subject->owned, subject->owner);
}

Test(memory_calls, a_lease_is_updated_or_stays_as_it_was, .init = memory_up_tcp,
     .fini = memory_down)
{
    check(sweep(update_lease, true) >= 2);
    check(sweep(update_lease_async, true) >= 2);
}

static const hl_fenced_write written = {sizeof(hl_fenced_write), "data", 0, "value", 5, 1, 0, 0};

static int set_and_release(struct subject *subject)
{
    return hl_lock_set_and_release(subject->lock, NULL, &written, &subject->err);
}

static int set_and_release_async(struct subject *subject)
{
    return await_completion(
        hl_lock_set_and_release_async(subject->owned, subject->owner, &written, completed, NULL));
}

static int fenced_set(struct subject *subject)
{
    return hl_fence_set(subject->client, &written, &subject->err);
}

static int fenced_set_async(struct subject *subject)
{
    return await_completion(hl_fence_set_async(subject->client, &written, completed, NULL));
}

static int fenced_last(struct subject *subject)
{
    uint64_t last = 0;
    return hl_fence_token(subject->client, "data", 0, &last, &subject->err);
}

static void told_last(int code, uint64_t token, const hl_error *err, void *arg)
{
    (void)token;
    completed(code, err, arg);
}

static int fenced_last_async(struct subject *subject)
{
    return await_completion(hl_fence_token_async(subject->client, "data", 0, told_last, NULL));
}

Test(memory_calls, writes_are_made_or_fail, .init = memory_up_tcp, .fini = memory_down)
{
    struct subject subject = {.call = set_and_release, .wants_hold = true, .may_be_unknown = true};
    if (!handle_is_fair()) {                /* a fair lock does not write */
        check(sweep_subject(subject) >= 2); /* and one more, if the caller reads the answer */
        subject.call = set_and_release_async;
        check(sweep_subject(subject) >= 2);
    }
    check(sweep(fenced_set, false) >= 2);
    check(sweep(fenced_set_async, false) >= 2);
    check(sweep(fenced_last, false) >= 2);
    check(sweep(fenced_last_async, false) >= 2);
}

static int make_a_lock(struct subject *subject)
{
    hl_lock *made = NULL;
    int code = hl_lock_new(subject->client, "a name not seen before", &made, &subject->err);
    check((made != NULL) == (code == HL_OK));
    free_lock(made);
    return code;
}

static int make_an_owner(struct subject *subject)
{
    hl_owner *made = NULL;
    int code = hl_owner_new(subject->client, &made);
    check((made != NULL) == (code == HL_OK));
    free_owner(made);
    return code;
}

static int make_a_cancel(struct subject *subject)
{
    hl_cancel *made = NULL;
    int code = hl_cancel_new(&made);
    (void)subject;
    check((made != NULL) == (code == HL_OK));
    hl_cancel_fire(made);
    hl_cancel_free(made);
    return code;
}

Test(memory_calls, handles_are_made_or_not, .init = memory_up_tcp, .fini = memory_down)
{
    check(sweep(make_a_lock, false) >= 2);
    check_int(sweep(make_an_owner, false), 1);
    check_int(sweep(make_a_cancel, false), 1);
}

static int dispatched(struct subject *subject)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    options.owner = subject->owner;
    int code = hl_lock_acquire_async(subject->lock, &options, completed, NULL);
    struct deadline deadline = deadline_of_wait(5000);
    while (code == HL_OK && atomic_load(&completions) == 0 && !deadline_is_over(deadline))
        check(hl_client_dispatch(subject->client) >= 0);
    check_int(atomic_load(&completions), code == HL_OK);
    return code == HL_OK ? atomic_load(&completion_code) : code;
}

static void dispatched_prepare(void *arg)
{
    struct subject *subject = arg;
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    options.flags = HL_CLIENT_DISPATCH;
    subject_prepare(arg);
    free_lock(subject->lock);
    free_lock(subject->owned);
    free_owner(subject->owner);
    close_client(subject->client);
    subject->client = open_client(&options);
    subject->lock = new_lock(subject->client, "subject");
    subject->owned = new_lock(subject->client, "owned");
    expect_ok(hl_owner_new(subject->client, &subject->owner));
}

Test(memory_calls, dispatch_runs_each_completion_once, .init = memory_up_tcp, .fini = memory_down)
{
    struct subject subject = {.call = dispatched};
    check(failing_malloc_sweep(&(struct failing_scenario){.scope = FAILING_THREAD,
                                                          .prepare = dispatched_prepare,
                                                          .run = subject_run,
                                                          .verify = subject_verify,
                                                          .arg = &subject}) >= 2);
}
