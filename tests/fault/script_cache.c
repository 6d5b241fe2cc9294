/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* NOSCRIPT: the server forgets the scripts, by SCRIPT FLUSH or by a restart. Callers notice
 * nothing, unless the server will not take the scripts back. */

#include "server_fault.h"

struct flusher {
    struct redis_server *server;
    atomic_bool stops;
    pthread_t thread;
};

static void *flusher_run(void *arg)
{
    struct flusher *flusher = arg;
    while (!atomic_load(&flusher->stops))
        redis_do(flusher->server, "SCRIPT FLUSH SYNC");
    return NULL;
}

static void flusher_begin(struct flusher *flusher, struct redis_server *server)
{
    flusher->server = server;
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
    hl_lock *lock = fault_lock(worker->client, worker->name);
    for (int i = 0; i < worker->rounds; i++) {
        hl_error err = HL_ERROR_INIT;
        int rc = hl_lock_acquire_for(lock, slow_ms(20000), &err);
        check_msg(rc == 0, "acquire: %s", err.text);
        check_int(hl_lock_acquire_for(lock, 0, &err), 0);
        int before = *worker->counter;
        sched_yield();
        *worker->counter = before + 1;
        check_int(hl_lock_release(lock, &err), 0);
        rc = hl_lock_release(lock, &err);
        check_msg(rc == 0, "release: %s", err.text);
    }
    hl_lock_free(lock);
    return NULL;
}

Test(script_cache, is_flushed_in_a_loop_under_load_and_nobody_notices)
{
    enum { WORKERS = 6, ROUNDS = 100 };
    struct redis_server *server = redis_server_start(NULL);
    struct fault_events events = {0};
    hl_client *client[] = {fault_client(server, &events), fault_client(server, &events)};
    struct flusher flusher;
    struct worker worker[WORKERS];
    int counter[2] = {0, 0};
    static const char *const names[] = {"a", "b"};
    flusher_begin(&flusher, server);
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
    check_int(atomic_load(&events.seen[HL_EVENT_DISCONNECTED]), 0);
    check(redis_calls(server, "script|load") > 0);
    hl_client_close(client[0]);
    hl_client_close(client[1]);
    redis_server_stop(server);
}

/* A bounced renewal is sent again at once, however often: it is no failed one, after which a
 * request timeout would pass. */
Test(script_cache, is_flushed_in_a_loop_and_holds_are_renewed_all_the_same)
{
    struct redis_server *server = redis_server_start(NULL);
    struct fault_events events = {0};
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(1500);
    options.request_timeout_ms = slow_ms(5000);
    hl_client *client = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n");
    struct flusher flusher;
    check_int(hl_lock_acquire(lock, NULL), 0);
    flusher_begin(&flusher, server);
    struct deadline deadline = deadline_in(3500);
    while (!deadline_is_over(deadline)) {
        check(hl_lock_is_held(lock, NULL));
        deadline_nap();
    }
    flusher_end(&flusher);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), 0);
    check(fault_stats(client).renewals >= 5);
    check_int(hl_lock_release(lock, NULL), 0);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

static const char cache_user[] =
    "user locker on >pw ~* &* -@all +evalsha +hget +hset +hincrby +hgetall +exists +pexpire +pttl "
    "+del +publish +subscribe +unsubscribe";

static hl_client *cache_client(struct redis_server *server)
{
    hl_client_options options = fault_options(NULL);
    options.username = "locker";
    options.password = "pw";
    return fault_open(redis_server_url(server), &options);
}

Test(script_cache, cannot_be_filled_by_a_user_without_script_load)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.config = cache_user});
    hl_client *client = cache_client(server);
    hl_lock *lock = fault_lock(client, "n");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_error err = HL_ERROR_INIT;
    for (int i = 0; i < 3; i++) {
        int64_t before = redis_evalsha_calls(server);
        check_int(hl_lock_acquire_for(lock, slow_ms(5000), &err), HL_EDENIED);
        fault_check_has(err.text, "SCRIPT LOAD");
        check_int(hl_lock_inspect(lock, &info, &err), HL_EDENIED);
        check_int(hl_lock_force_release(lock, &err), HL_EDENIED);
        check(redis_evalsha_calls(server) - before <= 10); /* no endless bounce */
    }
    expect_gone(server, "n");
    check_int(redis_int(server, "DBSIZE"), 0);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

/* Such a user works with scripts that somebody else has loaded. */
Test(script_cache, may_be_filled_by_somebody_else)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.config = cache_user});
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    }
    hl_client *client = cache_client(server);
    hl_lock *lock = fault_lock(client, "n");
    check_int(hl_lock_acquire(lock, NULL), 0);
    redis_do(server, "SCRIPT FLUSH");
    hl_error err = HL_ERROR_INIT;
    int code = hl_lock_release(lock, &err);
    expect_released(code, HL_EDENIED);
    if (code != HL_OK)
        fault_check_has(err.text, "SCRIPT LOAD");
    check(!hl_lock_is_held(lock, NULL));
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

/* The script of the release is not there yet, and the one of the acquire behind it is. */
Test(script_cache, lacks_a_posted_release_and_the_try_behind_it_is_not_busy_with_itself)
{
    struct redis_server *server = redis_server_start(NULL);
    hl_client *client = fault_client(server, NULL);
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    hl_lock *lock = NULL;
    options.flags = HL_LOCK_POSTED_RELEASE;
    check_int(hl_lock_new_with(client, "n", &options, &lock, NULL), 0);
    for (int i = 0; i < 2; i++) {
        check_int(hl_lock_try_acquire(lock, NULL), 0);
        check_int(hl_lock_release(lock, NULL), 0);
    }
    check(redis_wait_int(server, 0, 5000, "DBSIZE"));
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

Test(script_cache, is_empty_after_a_restart_and_nobody_notices)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.appendonly = true});
    hl_client *client = fault_client(server, NULL);
    hl_lock *lock = fault_lock(client, "n");
    for (int i = 0; i < 3; i++) {
        check_int(hl_lock_acquire_for(lock, slow_ms(5000), NULL), 0);
        redis_server_restart(server);
        hl_lock_info info = HL_LOCK_INFO_INIT;
        check_int(hl_lock_inspect(lock, &info, NULL), 0);
        check(info.mine);
        check_int(hl_lock_release(lock, NULL), 0);
    }
    expect_gone(server, "n");
    check_int(redis_int(server, "DBSIZE"), 0);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}
