/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server that is loading, or in the hands of an endless script, and replies that leave open what
 * they did: all of them are waited out. */

#include "server_fault.h"
#include "support/fake_server.h"

/* Loads its snapshot of 1,000 keys at a leisurely pace. */
static struct redis_server *loading_server(void)
{
    char config[96];
    snprintf(config, sizeof config, "key-load-delay %d\nloading-process-events-interval-bytes 1024",
             (int)slow_ms(2500));
    return redis_server_start(&(struct redis_options){.may_be_loading = true, .config = config});
}

static void loading_restart(struct redis_server *server)
{
    redis_do(server, "DEBUG POPULATE 1000");
    redis_do(server, "SAVE");
    redis_server_restart(server);
    fault_check_has(redis_str(server, "DBSIZE"), "LOADING");
}

Test(server_loading, is_waited_out_by_open)
{
    struct redis_server *server = loading_server();
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    loading_restart(server);
    hl_client *client = fault_open(redis_server_url(server), &options);
    check_int(redis_int(server, "DBSIZE"), 1000);
    hl_client_close(client);
    redis_server_stop(server);
}

Test(server_loading, is_waited_out_by_a_wait_and_told_by_one_that_is_over)
{
    struct redis_server *server = loading_server();
    hl_client_options options = fault_options(NULL);
    hl_client *short_of_time = fault_client(server, NULL);
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *patient = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(patient, "a"), *other = fault_lock(short_of_time, "b");
    struct fault_call call;
    hl_error err = HL_ERROR_INIT;
    loading_restart(server);
    fault_call_begin(&call, lock, fault_owner(patient), HL_WAIT_FOREVER);
    check_int(hl_lock_acquire_for(other, HL_WAIT_FOREVER, &err), HL_ESERVER);
    fault_check_has(err.text, "LOADING");
    check_int(hl_lock_acquire_for(other, 20, &err), HL_ESERVER);
    fault_check_has(err.text, "LOADING");
    hl_client_options impatient = fault_options(NULL);
    hl_client *late = NULL;
    impatient.outage_timeout_ms = slow_ms(500);
    check_int(hl_client_open(redis_server_url(server), &impatient, &late, &err), HL_ESERVER);
    fault_check_has(err.text, "LOADING");
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_acquire_for(other, slow_ms(5000), NULL), 0);
    hl_lock_free(lock);
    hl_lock_free(other);
    hl_owner_free(call.options.owner);
    hl_client_close(short_of_time);
    hl_client_close(patient);
    redis_server_stop(server);
}

static struct redis_server *busy_server(void)
{
    return redis_server_start(&(struct redis_options){.config = "busy-reply-threshold 50"});
}

static void busy_begin(struct redis_server *server, const char *script)
{
    close(redis_post(server, "EVAL %s 0", script));
    struct deadline deadline = deadline_in(5000);
    while (strncmp(redis_str(server, "DBSIZE"), "BUSY", 4) != 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
}

Test(server_busy, is_waited_out_and_nobody_kills_the_script)
{
    struct redis_server *server = busy_server();
    struct fault_events events = {0};
    hl_client *client = fault_client(server, &events);
    hl_lock *held = fault_lock(client, "held"), *lock = fault_lock(client, "n");
    struct fault_call call;
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(held, NULL), 0);
    busy_begin(server, "while true do end");
    check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
    fault_check_has(err.text, "BUSY");
    hl_client_options options = fault_options(NULL);
    hl_client *late = NULL;
    check_int(hl_client_open(redis_server_url(server), &options, &late, &err), HL_ESERVER);
    fault_check_has(err.text, "BUSY");
    fault_call_begin(&call, lock, fault_owner(client), HL_WAIT_FOREVER);
    check(wait_until(fault_has_waiter, client, 5000));
    check(hl_lock_is_held(held, NULL));
    redis_do(server, "SCRIPT KILL");
    check_int(fault_call_end(&call), 0);
    check_int(redis_calls(server, "script|kill"), 1); /* ours */
    check_int(hl_lock_release(held, NULL), 0);
    check_int(atomic_load(&events.seen[HL_EVENT_LOST]), 0);
    check_int(hl_lock_release_as(lock, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
    hl_lock_free(held);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

Test(server_busy, loses_a_hold_in_time_when_the_script_goes_on_and_on)
{
    struct redis_server *server = busy_server();
    struct fault_events events = {0};
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(600);
    hl_client *client = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    check_int(hl_lock_acquire(lock, NULL), 0);
    busy_begin(server, "while true do end");
    check(fault_wait_event(&events, HL_EVENT_LOST, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    check_int(hl_lock_release(lock, &err), HL_ELOST);
    redis_do(server, "SCRIPT KILL");
    check_int(hl_lock_acquire_for(lock, slow_ms(5000), NULL), 0);
    check_int(hl_lock_release(lock, NULL), 0);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

/* A script that has written cannot be killed; the server can. */
Test(server_busy, with_an_unkillable_script_is_waited_for_over_its_restart)
{
    struct redis_server *server = busy_server();
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *client = fault_open(redis_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n");
    struct fault_call call;
    busy_begin(server, "redis.call('SET','k','1') while true do end");
    fault_call_begin(&call, lock, fault_owner(client), HL_WAIT_FOREVER);
    check(wait_until(fault_has_waiter, client, 5000));
    fault_check_has(redis_str(server, "SCRIPT KILL"), "UNKILLABLE");
    check(!atomic_load(&call.is_over));
    redis_server_restart(server);
    check_int(fault_call_end(&call), 0);
    check_int(hl_lock_release_as(lock, call.options.owner, NULL), 0);
    hl_owner_free(call.options.owner);
    hl_lock_free(lock);
    hl_client_close(client);
    redis_server_stop(server);
}

static const char *const unclear[] = {
    "-UNKILLABLE Sorry the script already executed write commands.\r\n",
    "-ERR Error running script (call to f_1): @user_script:1: Script killed by user with SCRIPT "
    "KILL...\r\n",
    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "-CLUSTERDOWN The cluster is down\r\n",
    "-WHATEVER a later version invents\r\n",
};

/* They are asked again, with the same field, until there is an answer. */
Test(server_unclear, replies_are_asked_again)
{
    struct fake_server *server = fake_server_start(NULL, NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client = fault_open(fake_server_url(server), &options);
    hl_lock *lock = fault_lock(client, "n");
    for (size_t i = 0; i < sizeof unclear / sizeof unclear[0]; i++) {
        const struct fake_step steps[] = {{.expect = "EVALSHA", .answer = unclear[i]},
                                          {.expect = "EVALSHA"},
                                          {.expect = "EVALSHA", .answer = unclear[i]},
                                          {.expect = "EVALSHA"}};
        fake_server_play(server, steps, 4);
        check_int(hl_lock_acquire_for(lock, slow_ms(5000), NULL), 0);
        check(hl_lock_is_held(lock, NULL));
        check_int(hl_lock_release(lock, NULL), 0);
        check(fake_server_wait_play(server, 5000));
    }
    hl_lock_free(lock);
    hl_client_close(client);
    fake_server_stop(server);
}

static bool unclear_for_ever(const struct resp_command *command, struct fake_reply *reply,
                             void *arg)
{
    if (!resp_command_begins(command, "EVALSHA"))
        return false;
    fake_reply_text(reply, arg);
    return true;
}

Test(server_unclear, replies_for_ever_are_told_after_the_outage_timeout)
{
    for (size_t i = 0; i < sizeof unclear / sizeof unclear[0]; i++) {
        struct fake_server *server = fake_server_start(unclear_for_ever, (void *)unclear[i]);
        hl_client_options options = fault_options(NULL);
        options.outage_timeout_ms = 200;
        options.request_timeout_ms = 200;
        hl_client *client = fault_open(fake_server_url(server), &options);
        hl_lock *lock = fault_lock(client, "n");
        hl_error err = HL_ERROR_INIT;
        char word[16];
        check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
        snprintf(word, sizeof word, "%.*s", (int)strcspn(unclear[i] + 1, " "), unclear[i] + 1);
        fault_check_has(err.text, word);
        hl_lock_free(lock);
        hl_client_close(client);
        fake_server_stop(server);
    }
}

Test(server_unclear, refusals_that_cannot_pass_are_told_at_once)
{
    static const struct {
        const char *reply;
        int code;
    } final[] = {
        {"-CROSSSLOT Keys in request don't hash to the same slot\r\n", HL_ESERVER},
        {"-DENIED Redis is running in protected mode\r\n", HL_EDENIED},
        {"-NOPROTO unsupported protocol version\r\n", HL_ESERVER},
        {"-ERR unknown command 'EVALSHA'\r\n", HL_ESERVER},
        {"-NOPERM User x has no permissions to run the 'evalsha' command\r\n", HL_EDENIED}};
    for (size_t i = 0; i < sizeof final / sizeof final[0]; i++) {
        struct fake_server *server = fake_server_start(unclear_for_ever, (void *) final[i].reply);
        hl_client_options options = fault_options(NULL);
        options.outage_timeout_ms = slow_ms(20000);
        hl_client *client = fault_open(fake_server_url(server), &options);
        hl_lock *lock = fault_lock(client, "n");
        check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, NULL), final[i].code);
        hl_lock_free(lock);
        hl_client_close(client);
        fake_server_stop(server);
    }
}

/* A server in protected mode says so at the door and hangs up. */
Test(server_unclear, refusals_at_the_door_are_told_by_open)
{
    static const struct fake_step steps[] = {
        {.expect = "",
         .answer = "-DENIED Redis is running in protected mode\r\n",
         .then = FAKE_CLOSE}};
    struct fake_server *server = fake_server_start(NULL, NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    fake_server_play(server, steps, 1);
    check_int(hl_client_open(fake_server_url(server), &options, &client, &err), HL_EDENIED);
    fault_check_has(err.text, "protected mode");
    fake_server_stop(server);
}
