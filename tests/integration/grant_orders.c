/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Answers come by one connection and messages by another, so what the server did first may be heard
 * of last. Every order of a grant and an answer about the same wait.
 */

#include "lease/state/name.h"
#include "sync/lock/lock.h"
#include "two_links.h"

static struct recorder told = RECORDER_INIT, lost = RECORDER_INIT;

static void check_held_and_release(void)
{
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    check(hl_lock_is_held(lock, owner));
    expect_held_by(waiter.client, lock, 1);
    check_int(stats_of(waiter.client).losses, 0);
    expect_ok(hl_lock_release_as(lock, owner, NULL));
    expect_free(lock);
}

/* A grant for a wait that is over, which the client gives back. */
static void publish_late_grant(void)
{
    char grant[128];
    snprintf(grant, sizeof grant, "g %s:1000000 1 1 1000 0 stock", hl_client_id(waiter.client));
    redis_do(server, "PUBLISH %s %s", mailbox_of(waiter.client), grant);
}

/* Returns when the client has read the messages that the proxy kept: behind them comes a late
 * grant. */
static void expect_messages_read(void)
{
    int64_t calls = redis_evalsha_calls(server);
    publish_late_grant();
    proxy_release(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_calls(calls + 1);
}

TcpLaw(orders, a_grant_before_the_busy_answer_that_is_older)
{
    contention_begin(10000, 10000);
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_in_queue(1);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    proxy_release(waiter.proxy, waiter.commands, PROXY_DOWN); /* busy, it says */
    check_held_and_release();
    check_int(stats_of(waiter.client).grants, 1);
    contention_end();
}

TcpLaw(orders, a_grant_before_a_busy_answer_that_is_newer)
{
    contention_begin(10000, 50);
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    /* Not renewed, so that nothing else tells. */
    wait_async(owner, &told,
               ACQUIRE(.lease_ms = 20000, .on_event = record_event, .event_arg = &lost));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP);
    expect_kept(&waiter, waiter.commands, PROXY_UP); /* a poll */
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_acquire(rivals, NULL));
    proxy_release(waiter.proxy, waiter.commands, PROXY_UP);
    expect_story(&lost, "LOST gone");
    check(!hl_lock_is_held(lock, owner));
    expect_outcome(hl_lock_release_as(lock, owner, NULL), HL_ELOST);
    check(hl_lock_is_held(rivals, NULL));
    check_int(redis_int(server, "HLEN stock"), 1);
    contention_end();
}

TcpLaw(orders, the_answer_yours_before_the_grant)
{
    contention_begin(10000, 50);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK"); /* by a poll */
    int64_t calls = redis_evalsha_calls(server);
    expect_messages_read();
    check_held_and_release();
    /* The late grant was given back, and the lock was released; nothing else was given back. */
    check_int(redis_evalsha_calls(server), calls + 2);
    check_int(stats_of(waiter.client).grants, 0);
    contention_end();
}

TcpLaw(orders, the_answer_yours_after_the_grant)
{
    contention_begin(10000, 50);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP);
    expect_kept(&waiter, waiter.commands, PROXY_UP); /* a poll */
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK"); /* by the grant */
    check(hl_lock_validity_ms(lock, owner) <= 40000);
    proxy_release(waiter.proxy, waiter.commands, PROXY_UP);
    check_held_and_release();
    check_int(stats_of(waiter.client).grants, 1);
    contention_end();
}

/* How often this field was released, of what the server ran. */
static int releases_of(const char *field, const char *lines)
{
    const char *release = hli_script_get(HLI_SCRIPT_LOCK_RELEASE)->sha1;
    char quoted[160];
    int count = 0;
    snprintf(quoted, sizeof quoted, "\"%s\"", field);
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        char words[1024];
        snprintf(words, sizeof words, "%.*s", (int)strcspn(line, "\n"), line);
        count += strncasecmp(words, "\"evalsha\"", 9) == 0 && strstr(words, release) &&
                 strstr(words, quoted);
    }
    return count;
}

TcpLaw(orders, a_grant_before_the_answer_to_a_cancel)
{
    contention_begin(10000, 10000);
    hl_client *third = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *thirds = new_lock(third, "stock");
    hl_cancel *cancel = new_cancel();
    wait_async(owner, &told, ACQUIRE(.cancel = cancel));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP);
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    expect_kept(&waiter, waiter.commands, PROXY_UP);
    redisContext *watch = watch_begin();
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    char field[128];
    snprintf(field, sizeof field, "%s", field_of(lock));
    uint64_t commands = stats_of(waiter.client).commands;
    publish_late_grant();
    wait_stat(waiter.client, commands, commands + 1);       /* it has heard both */
    proxy_release(waiter.proxy, waiter.commands, PROXY_UP); /* passed on at once */
    expect_ok(hl_lock_acquire_for(thirds, slow_ms(5000), NULL));
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    check_int(releases_of(field, watch_end(watch)), 1); /* it was enough */
    check_int(stats_of(waiter.client).grants, 0);
    contention_end();
}

TcpLaw(orders, a_grant_after_the_answer_to_a_cancel)
{
    contention_begin(10000, 10000);
    hl_client *third = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *thirds = new_lock(third, "stock");
    hl_cancel *cancel = new_cancel();
    wait_async(owner, &told, ACQUIRE(.cancel = cancel));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    expect_ok(hl_lock_acquire_with(thirds, /* not renewed */
                                   ACQUIRE(.wait_ms = slow_ms(5000), .lease_ms = 20000), NULL));
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    uint64_t commands = stats_of(waiter.client).commands;
    proxy_release(waiter.proxy, waiter.messages, PROXY_DOWN);
    wait_stat(waiter.client, commands,
              commands + 1); /* it gives back what it has no more, and harms no hold */
    expect_held_by(third, thirds, 1);
    check(hl_lock_is_held(thirds, NULL));
    contention_end();
}

/* The field stands in the queue again by a request that ran late; its hold is lost meanwhile. */
TcpLaw(orders, the_word_that_a_hold_is_gone_before_a_grant_of_its_field)
{
    contention_begin(1000, 10000);
    hl_client *rival = open_client(CLIENT(.poll_ms = 10000));
    hl_lock *rivals = new_lock(rival, "stock");
    char field[128];
    wait_async(owner, &told, ACQUIRE(.on_event = record_event, .event_arg = &lost));
    expect_settled();
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    snprintf(field, sizeof field, "%s", field_of(lock));
    redis_do(server, "DEL stock");
    expect_ok(hl_lock_acquire(rivals, NULL));
    redis_do(server, "ZADD hirelock_queue:{stock} 1 %s", field);
    expect_story(&lost, "LOST gone"); /* by its renewal */
    expect_ok(hl_lock_release(rivals, NULL));
    check_str(field_of(lock), field);
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    check(!hl_lock_is_held(lock, owner));
    check_int(stats_of(waiter.client).grants, 1);
    expect_outcome(hl_lock_release_as(lock, owner, NULL), HL_ELOST);
    expect_free(lock);
    contention_end();
}

TcpLaw(orders, a_subscription_that_is_confirmed_after_the_busy_answer)
{
    contention_begin(10000, 600000);
    redis_do(server, "PEXPIRE stock 600000"); /* neither its end nor a poll comes to help */
    proxy_hold(waiter.proxy, waiter.messages, PROXY_UP);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_kept(&waiter, waiter.messages, PROXY_UP);
    redis_do(server, "DEL stock hirelock_queue:{stock}"); /* whose message it misses */
    proxy_release(waiter.proxy, waiter.messages, PROXY_UP);
    expect_story(&told, "done HL_OK");
    contention_end();
}

TcpLaw(orders, a_subscription_that_is_confirmed_before_the_busy_answer)
{
    contention_begin(10000, 10000);
    hl_cancel *cancel = new_cancel();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_UP);
    wait_async(owner, &told, ACQUIRE(.cancel = cancel));
    expect_kept(&waiter, waiter.messages, PROXY_UP);
    hl_cancel_fire(cancel);
    expect_story(&told, "done HL_ECANCELED");
    expect_in_queue(0);
    expect_ok(hl_client_ping(waiter.client, -1, NULL)); /* the cancel is answered */
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_in_queue(1); /* the server has said that it is busy */
    redis_do(server, "DEL stock hirelock_queue:{stock}");
    proxy_release(waiter.proxy, waiter.messages, PROXY_UP);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{stock}", 1, 10000));
    redis_do(server, "PUBLISH %s nonsense", mailbox_of(waiter.client));
    proxy_release(waiter.proxy, waiter.commands, PROXY_DOWN);
    expect_story(&told, "done HL_ECANCELED, done HL_OK");
    contention_end();
}

/* ---- A new link ---- */

TcpLaw(a_grant, that_was_lost_with_its_link_is_found_by_asking_on_the_next)
{
    contention_begin(10000, 10000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    int before = proxy_accepted(waiter.proxy);
    proxy_kill(waiter.proxy, waiter.messages);
    expect_story(&told, "done HL_OK");
    check_int(proxy_accepted(waiter.proxy), before + 2); /* both connections are new */
    check_int(stats_of(waiter.client).grants, 0);
    check_held_and_release();
    contention_end();
}

static bool is_linked_anew(void *accepted_before)
{
    return proxy_find(waiter.proxy, "SUBSCRIBE") >= *(const int *)accepted_before;
}

/* The client connects anew at once; its loop then waits for the name's mutex. */
static void kill_messages(void)
{
    int before = proxy_accepted(waiter.proxy);
    proxy_kill(waiter.proxy, waiter.messages);
    check(wait_until(is_linked_anew, &before, 10000));
    two_links_find(&waiter);
}

/*
 * The waiter's loop has come up on a new link: its mailbox hears grants already, and "stock" has
 * not asked again yet, for its mutex is here. Now it is granted, the claim runs out, and a rival
 * gets it; and then the grant arrives behind the request and before any answer.
 */
TcpLaw(a_grant, on_a_new_link_is_not_counted_from_the_first_request_there)
{
    contention_begin(10000, 60000);
    hl_lock *rivals = new_lock(open_client(NULL), "stock");
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    pthread_mutex_lock(&lock->handle.name->mutex);
    kill_messages();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    redis_do(server, "PEXPIRE stock 1");
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    expect_ok(hl_lock_acquire(rivals, NULL));
    pthread_mutex_unlock(&lock->handle.name->mutex);
    expect_in_queue(1); /* it has asked, and the answer is kept */
    expect_messages_read();
    check(!hl_lock_is_held(lock, owner));
    proxy_pass(waiter.proxy);
    expect_ok(hl_client_ping(waiter.client, -1, NULL));
    check(hl_lock_is_held(rivals, NULL));
    check_int(stats_of(waiter.client).grants, 0);
    expect_ok(hl_lock_release(rivals, NULL));
    expect_story(&told, "done HL_OK");
    contention_end();
}

/* The same on a link whose answer is older than the grant: it is asked again, for the subscription
 * is younger. */
TcpLaw(a_grant, that_cannot_be_judged_costs_no_poll)
{
    contention_begin(10000, 60000);
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    pthread_mutex_lock(&lock->handle.name->mutex);
    kill_messages();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_DOWN);
    proxy_hold(waiter.proxy, waiter.messages, PROXY_DOWN);
    int64_t calls = redis_evalsha_calls(server);
    pthread_mutex_unlock(&lock->handle.name->mutex);
    expect_calls(calls + 1); /* busy, and kept */
    expect_ok(hl_lock_release(held, NULL));
    expect_held_by(waiter.client, lock, 1);
    expect_messages_read();
    check(!hl_lock_is_held(lock, owner));
    proxy_pass(waiter.proxy);
    expect_story(&told, "done HL_OK");
    contention_end();
}

#define WRITE(text)                                                                                \
    (&(hl_fenced_write){.size = sizeof(hl_fenced_write),                                           \
                        .key = "data",                                                             \
                        .value = (text),                                                           \
                        .value_length = strlen(text)})

/* It runs when the hold is over by itself, and another one has written and gone. */
TcpLaw(orders, a_write_of_a_hold_behind_a_request_from_before_its_grant)
{
    static struct recorder wrote = RECORDER_INIT, other_told = RECORDER_INIT;
    contention_begin(10000, 60000);
    expect_ok(hl_lock_set_and_release(held, NULL, WRITE("first"), NULL)); /* its script is known */
    expect_ok(hl_lock_acquire(held, NULL));
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP);
    wait_async(other, &other_told, ACQUIRE(.lease_ms = 0));
    expect_kept(&waiter, waiter.commands, PROXY_UP); /* it asks for the field in the queue */
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    expect_ok(hl_lock_set_and_release_async(lock, owner, WRITE("older"), record_done, &wrote));
    redis_do(server, "PEXPIRE stock 1");
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(hl_lock_set_and_release(held, NULL, WRITE("newer"), NULL));
    proxy_release(waiter.proxy, waiter.commands, PROXY_UP);
    expect_story(&wrote, "done HL_ELOST");
    expect_story(&other_told, "done HL_OK");
    check_str(redis_str(server, "GET data"), "newer");
    expect_ok(hl_lock_release_as(lock, other, NULL));
    expect_free(lock);
    contention_end();
}

static bool is_cut_off(void *client)
{
    return hl_client_ping(client, 10, NULL) == HL_ECONN;
}

/* The request runs when its link is gone, and before the next one is up. */
Law(orders, a_write_of_a_hold_whose_request_had_no_answer_when_the_link_broke)
{
    static struct recorder wrote = RECORDER_INIT, other_told = RECORDER_INIT;
    char field[64];
    contention_begin(10000, 60000);
    expect_ok(hl_lock_set_and_release(held, NULL, WRITE("first"), NULL)); /* its script is known */
    expect_ok(hl_lock_acquire(held, NULL));
    wait_async(owner, &told, ACQUIRE(.lease_ms = 0));
    expect_settled();
    proxy_hold(waiter.proxy, waiter.commands, PROXY_UP);
    wait_async(other, &other_told, ACQUIRE(.lease_ms = 0));
    expect_kept(&waiter, waiter.commands, PROXY_UP); /* it asks for the field in the queue */
    expect_ok(hl_lock_release(held, NULL));
    expect_story(&told, "done HL_OK");
    snprintf(field, sizeof field, "%s", redis_str(server, "HKEYS stock"));
    proxy_refuse(waiter.proxy, true);
    proxy_kill_all(waiter.proxy);
    check(wait_until(is_cut_off, waiter.client, 10000));
    expect_ok(hl_lock_set_and_release_async(lock, owner, WRITE("older"), record_done, &wrote));
    redis_do(server, "PEXPIRE stock 1");
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    expect_ok(hl_lock_acquire(held, NULL));
    expect_ok(hl_lock_set_and_release(held, NULL, WRITE("newer"), NULL));
    redis_do(server, "HSET stock %s 1", field); /* by the request */
    redis_do(server, "PEXPIRE stock 60000");
    proxy_refuse(waiter.proxy, false);
    expect_story(&wrote, "done HL_ELOST");
    expect_story(&other_told, "done HL_OK");
    check_str(redis_str(server, "GET data"), "newer");
    expect_ok(hl_lock_release_as(lock, other, NULL));
    expect_free(lock);
    contention_end();
}
