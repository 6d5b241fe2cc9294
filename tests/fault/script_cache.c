/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* NOSCRIPT: the server forgets the scripts, by SCRIPT FLUSH or by a restart. Callers notice
 * nothing, unless the server will not take the scripts back. */

#include "redis/script.h"
#include "server_fault.h"
#include "support/fake_server.h"
#include "support/kinds.h"

struct flusher {
    atomic_bool stops;
    pthread_t thread;
};

static void *flusher_run(void *arg)
{
    struct flusher *flusher = arg;
    while (!atomic_load(&flusher->stops))
        redis_do(server, "SCRIPT FLUSH SYNC");
    return NULL;
}

static void flusher_begin(struct flusher *flusher)
{
    atomic_init(&flusher->stops, false);
    check_int(pthread_create(&flusher->thread, NULL, flusher_run, flusher), 0);
}

static void flusher_end(struct flusher *flusher)
{
    atomic_store(&flusher->stops, true);
    pthread_join(flusher->thread, NULL);
}

struct worker {
    hl_client *client;
    const char *name;
    int *counter; /* guarded by nothing but the lock */
    int rounds;
    pthread_t thread;
};

static void *worker_run(void *arg)
{
    struct worker *worker = arg;
    hl_lock *lock = new_lock(worker->client, worker->name);
    for (int i = 0; i < worker->rounds; i++) {
        hl_error err = HL_ERROR_INIT;
        int rc = hl_lock_acquire_for(lock, slow_ms(20000), &err);
        check_msg(rc == 0, "acquire: %s", err.text);
        rc = hl_lock_acquire_for(lock, 0, &err);
        check_msg(rc == 0, "nested acquire: %s", err.text);
        int before = *worker->counter;
        sched_yield();
        *worker->counter = before + 1;
        expect_ok(hl_lock_release(lock, &err));
        rc = hl_lock_release(lock, &err);
        check_msg(rc == 0, "release: %s", err.text);
    }
    free_lock(lock);
    return NULL;
}

static void logging_server_up(void)
{
    server_up_with(&(struct redis_options){.config = REDIS_LOGS_CALLS});
}

Test(script_cache, is_flushed_in_a_loop_under_load_and_no_call_notices, .init = logging_server_up,
     .fini = server_down)
{
    enum { WORKERS = 6, ROUNDS = 100 };
    static struct events events;
    hl_client *client[] = {open_impatient(&events), open_impatient(&events)};
    struct flusher flusher;
    struct worker worker[WORKERS];
    int counter[2] = {0, 0};
    static const char *const names[] = {"a", "b"};
    flusher_begin(&flusher);
    for (int i = 0; i < WORKERS; i++) {
        worker[i] = (struct worker){.client = client[i % 2],
                                    .name = names[i / 2 % 2],
                                    .counter = &counter[i / 2 % 2],
                                    .rounds = ROUNDS};
        check_int(pthread_create(&worker[i].thread, NULL, worker_run, &worker[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i].thread, NULL);
    flusher_end(&flusher);
    check_int(counter[0] + counter[1], WORKERS * ROUNDS);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check(redis_subcommand_calls(server, "script", "load") > 0);
}

/* A bounced renewal is sent again at once, and right behind its script: it does not bounce twice.
 */
Law(script_cache, is_flushed_in_a_loop_and_holds_are_renewed_all_the_same)
{
    static struct events events;
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(1500) + 3000;
    options.request_timeout_ms = slow_ms(5000);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "n");
    struct flusher flusher;
    expect_ok(hl_lock_acquire(lock, NULL));
    flusher_begin(&flusher);
    struct deadline deadline = deadline_in(3500);
    while (!deadline_is_over(deadline) || stats_of(client).renewals < 5) {
        check(hl_lock_is_held(lock, NULL));
        deadline_nap();
    }
    flusher_end(&flusher);
    int64_t ran = redis_calls(server, "evalsha"), renewals = (int64_t)stats_of(client).renewals;
    check_msg(ran <= 2 * renewals + 6, "%d renewals by %d requests", (int)renewals, (int)ran);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(hl_lock_release(lock, NULL));
}

static bool forgetful_answer(const struct resp_command *command, struct fake_reply *reply,
                             void *arg)
{
    (void)arg;
    if (resp_command_begins(command, "EVALSHA"))
        fake_reply_text(reply, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    return reply->length > 0;
}

/* As a proxy before several servers, each with a cache of its own. */
Test(script_cache, that_takes_scripts_and_has_none_is_not_stormed)
{
    struct fake_server *fake = fake_server_start(forgetful_answer, NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms();
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(700) + 1000, &err), HL_ESERVER);
    check_has(err.text, "NOSCRIPT");
    int asked = fake_server_count(fake, "EVALSHA"), most = 8 * (int)((now_ms() - begin_ms) / 70);
    check_msg(asked >= 8 && asked <= most, "%d requests", asked);
    free_lock(lock);
    close_client(client);
    fake_server_stop(fake);
}

static const char cache_user[] = "user locker on >pw ~* &* -@all +evalsha +hget +hset +hincrby "
                                 "+hrandfield +exists +pexpire +pttl "
                                 "+del +publish +subscribe +unsubscribe";

static hl_client *cache_client(void)
{
    hl_client_options options = fault_options(NULL);
    options.username = "locker";
    options.password = "pw";
    return open_client(&options);
}

Test(script_cache, cannot_be_filled_by_a_user_without_script_load, .fini = server_down)
{
    server_up_with(&(struct redis_options){.config = cache_user});
    hl_client *client = cache_client();
    hl_lock *lock = new_lock(client, "n");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    for (int i = 0; i < 3; i++) {
        int64_t before = redis_evalsha_calls(server);
        expect_outcome(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_EDENIED);
        check_has(err.text, "SCRIPT LOAD");
        expect_outcome(hl_lock_inspect(lock, &info, &err), HL_EDENIED);
        expect_outcome(hl_lock_force_release(lock, &err), HL_EDENIED);
        check(redis_evalsha_calls(server) - before <= 10); /* no endless bounce */
    }
    expect_gone(server, "n");
    check_int(redis_int(server, "DBSIZE"), 0);
}

/* Such a user works with scripts that another user has loaded. */
Test(script_cache, may_be_filled_by_another_user, .fini = server_down)
{
    server_up_with(&(struct redis_options){.config = cache_user});
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    }
    hl_client *client = cache_client();
    hl_lock *lock = new_lock(client, "n");
    expect_ok(hl_lock_acquire(lock, NULL));
    redis_do(server, "SCRIPT FLUSH");
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_release(lock, &err);
    expect_released(code, HL_EDENIED);
    if (code != HL_OK)
        check_has(err.text, "SCRIPT LOAD");
    check(!hl_lock_is_held(lock, NULL));
}

/* The script of the release is not there yet, and the one of the acquire behind it is. */
Law(script_cache, lacks_a_posted_release_and_the_try_behind_it_is_not_busy_with_itself)
{
    hl_client *client = open_impatient(NULL);
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    options.flags = HL_LOCK_ASYNC_RELEASE;
    hl_lock *lock = new_lock_with(client, "n", &options);
    for (int i = 0; i < 2; i++) {
        expect_ok(hl_lock_try_acquire(lock, NULL));
        expect_ok(hl_lock_release(lock, NULL));
    }
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
}

Test(script_cache, is_empty_after_a_restart_and_no_call_notices, .fini = server_down)
{
    server_up_with(&(struct redis_options){.appendonly = true});
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "n");
    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), NULL));
        redis_server_restart(server);
        hl_lock_info info = HL_LOCK_INFO_INIT;
        expect_ok(hl_lock_inspect(lock, &info, NULL));
        check(info.mine);
        expect_ok(hl_lock_release(lock, NULL));
    }
    expect_gone(server, "n");
    check_int(redis_int(server, "DBSIZE"), 0);
}
