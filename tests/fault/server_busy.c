/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server that is loading, or in the hands of an endless script, and replies that leave open what
 * they did: all of them are waited out. */

#include "server_fault.h"
#include "support/fake_server.h"
#include "support/redis_program.h"

/* Loads its snapshot of 1,000 keys at a leisurely pace. It answers in between: after each few keys
 * if it can be told to, and else after each 2 MiB, so then the keys are large. */
static int loading_key_size;

static void loading_up(void)
{
    static const char often[] = "loading-process-events-interval-bytes 1024";
    bool answers_often = redis_program_knows(often);
    char config[96];
    loading_key_size = answers_often ? 10 : 50000;
    snprintf(config, sizeof config, "key-load-delay %d\nrdbcompression no\n%s",
             (int)slow_ms(2500) + 4000, answers_often ? often : "");
    server_up_with(&(struct redis_options){.may_be_loading = true, .config = config});
}

static void loading_restart(void)
{
    redis_do(server, "DEBUG POPULATE 1000 key %d", loading_key_size);
    redis_do(server, "SAVE");
    redis_server_restart(server);
    check_has(redis_str(server, "DBSIZE"), "LOADING");
}

static bool loading_is_known(void *client)
{
    hl_error err = HL_ERROR_INIT;
    return hl_client_ping(client, 1, &err) == HL_ESERVER && strstr(err.text, "LOADING");
}

Test(server_loading, is_waited_out_by_open, .init = loading_up, .fini = server_down)
{
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    loading_restart();
    open_client(&options);
    check_int(redis_int(server, "DBSIZE"), 1000);
}

Test(server_loading, is_waited_out_by_a_wait_and_told_by_a_wait_that_is_over, .init = loading_up,
     .fini = server_down)
{
    hl_client_options options = fault_options(NULL);
    hl_client *short_of_time = open_impatient(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *patient = open_client(&options);
    hl_lock *lock = new_lock(patient, "a"), *other = new_lock(short_of_time, "b");
    hl_error err = HL_ERROR_INIT;
    loading_restart();
    check(wait_until(loading_is_known, short_of_time, 5000));
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_outcome(hl_lock_acquire_for(other, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "LOADING");
    expect_outcome(hl_lock_acquire_for(other, 20, &err), HL_ESERVER);
    check_has(err.text, "LOADING");
    hl_client_options impatient = fault_options(NULL);
    hl_client *late = NULL;
    impatient.outage_timeout_ms = slow_ms(500);
    expect_outcome(hl_client_open(redis_server_url(server), &impatient, &late, &err), HL_ESERVER);
    check_has(err.text, "LOADING");
    expect_ok(actor_end(call));
    expect_ok(hl_lock_acquire_for(other, slow_ms(5000), NULL));
}

static void busy_up(void)
{
    server_up_with(&(struct redis_options){.config = "lua-time-limit 50\n" REDIS_LOGS_CALLS});
}

static void busy_begin(const char *script)
{
    close(redis_post(server, "EVAL %s 0", script));
    struct deadline deadline = deadline_of_wait(5000);
    while (strncmp(redis_str(server, "DBSIZE"), "BUSY", 4) != 0) {
        check(!deadline_is_over(deadline));
        deadline_nap();
    }
}

Test(server_busy, is_waited_out_and_the_script_is_not_killed, .init = busy_up, .fini = server_down)
{
    static struct events events;
    hl_client *client = open_impatient(&events);
    hl_lock *lock = new_lock(client, "n"); /* a retained one would hold for 5 s at most */
    hl_lock *held =
        new_lock_with(client, "held", &(hl_lock_options){.size = sizeof(hl_lock_options)});
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(held, NULL));
    busy_begin("while true do end");
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
    check_has(err.text, "BUSY");
    hl_client_options options = fault_options(NULL);
    hl_client *late = NULL;
    expect_outcome(hl_client_open(redis_server_url(server), &options, &late, &err), HL_ESERVER);
    check_has(err.text, "BUSY");
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    check_msg(hl_lock_is_held(held, NULL), "lost: %s", events.reason[HL_EVENT_LOST]);
    redis_do(server, "SCRIPT KILL");
    expect_ok(actor_end(call));
    check_int(redis_subcommand_calls(server, "script", "kill"), 1); /* ours */
    expect_ok(hl_lock_release(held, NULL));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    expect_ok(actor_release(call, lock, NULL));
}

Test(server_busy, loses_a_hold_in_time_when_the_script_goes_on_and_on, .init = busy_up,
     .fini = server_down)
{
    static struct events events;
    hl_client_options options = fault_options(&events);
    options.watchdog_timeout_ms = slow_ms(600) + 1400;
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "n");
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(lock, NULL));
    busy_begin("while true do end");
    check(events_wait(&events, HL_EVENT_LOST, 1, 5000));
    check_str(events.reason[HL_EVENT_LOST], "expired");
    check(!hl_lock_is_held(lock, NULL));
    expect_outcome(hl_lock_release(lock, &err), HL_ELOST);
    redis_do(server, "SCRIPT KILL");
    expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
}

/* A script that has written cannot be killed; the server can. */
Test(server_busy, with_an_unkillable_script_is_waited_for_over_its_restart, .init = busy_up,
     .fini = server_down)
{
    hl_client_options options = fault_options(NULL);
    options.outage_timeout_ms = slow_ms(20000);
    hl_client *client = open_client(&options);
    hl_lock *lock = new_lock(client, "n");
    busy_begin("redis.call('SET','k','1') while true do end");
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    check_has(redis_str(server, "SCRIPT KILL"), "UNKILLABLE");
    check(!actor_is_done(call));
    redis_server_restart(server);
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, lock, NULL));
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
    struct fake_server *fake = fake_server_start(NULL, NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "n");
    for (size_t i = 0; i < sizeof unclear / sizeof unclear[0]; i++) {
        const struct fake_step steps[] = {{.expect = "EVALSHA", .answer = unclear[i]},
                                          {.expect = "EVALSHA"},
                                          {.expect = "EVALSHA", .answer = unclear[i]},
                                          {.expect = "EVALSHA"}};
        fake_server_play(fake, steps, 4);
        expect_ok(hl_lock_acquire_for(lock, slow_ms(5000), NULL));
        check(hl_lock_is_held(lock, NULL));
        expect_ok(hl_lock_release(lock, NULL));
        check(fake_server_wait_play(fake, 5000));
    }
    free_lock(lock);
    close_client(client);
    fake_server_stop(fake);
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
        struct fake_server *fake = fake_server_start(unclear_for_ever, (void *)unclear[i]);
        hl_client_options options = fault_options(NULL);
        options.outage_timeout_ms = slow_ms(200) + 800;
        options.request_timeout_ms = slow_ms(500) + 500;
        hl_client *client = open_client_at(fake_server_url(fake), &options);
        hl_lock *lock = new_lock(client, "n");
        hl_error err = HL_ERROR_INIT;
        char end[16];
        expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_ESERVER);
        size_t length = strcspn(unclear[i], "\r");
        snprintf(end, sizeof end, "%.*s", 8, unclear[i] + length - 8);
        check_has(err.text, end);
        free_lock(lock);
        close_client(client);
        fake_server_stop(fake);
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
        struct fake_server *fake = fake_server_start(unclear_for_ever, (void *) final[i].reply);
        hl_client_options options = fault_options(NULL);
        options.outage_timeout_ms = slow_ms(20000);
        hl_client *client = open_client_at(fake_server_url(fake), &options);
        hl_lock *lock = new_lock(client, "n");
        check_int(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, NULL), final[i].code);
        free_lock(lock);
        close_client(client);
        fake_server_stop(fake);
    }
}

/* A fake in protected mode says so at the door and hangs up. */
Test(server_unclear, refusals_at_the_door_are_told_by_open)
{
    static const struct fake_step steps[] = {
        {.expect = "",
         .answer = "-DENIED Redis is running in protected mode\r\n",
         .then = FAKE_CLOSE}};
    struct fake_server *fake = fake_server_start(NULL, NULL);
    hl_client_options options = fault_options(NULL);
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    fake_server_play(fake, steps, 1);
    expect_outcome(hl_client_open(fake_server_url(fake), &options, &client, &err), HL_EDENIED);
    check_has(err.text, "protected mode");
    fake_server_stop(fake);
}
