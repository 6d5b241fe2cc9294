/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A cluster's words at a single server: every key that a script touches is declared, grants and
 * wants come by the mailboxes of their name, and a lock is retained only by a client that listens.
 */
#include "support/wording.h"

#include "lease/calls/wording.h"
#include "lease/state/contention.h"
#include "redis/script.h"
#include "settled.h"
#include "support/actor.h"
#include "support/deadline.h"
#include "support/fatal.h"
#include "support/grace.h"
#include "support/kinds.h"
#include "support/kit.h"
#include "support/recorder.h"
#include "support/redis_link.h"
#include "support/redis_program.h"
#include "sync/lock/lock.h"

#include <hirelock/fence.h>

#include <string.h>

enum { WORDS = 400, WORD = 200 };

static hl_client *client, *rival;

static hl_client *open_worded(const hl_client_options *options)
{
    hl_client *opened = open_client(options);
    word_as(opened, &hli_wording_sharded);
    return opened;
}

static void begin(void)
{
    client = open_worded(
        CLIENT(.watchdog_timeout_ms = SHORT_MS, .poll_ms = 60000, .flags = HL_CLIENT_HOLDER_INFO));
    rival = open_worded(CLIENT(.poll_ms = 60000, .flags = HL_CLIENT_HOLDER_INFO));
}

/* ---- Every key is declared ---- */

/* What the server tells of the commands that it runs; of a request for a script, and behind it of
 * the script's own commands. */
static struct watch {
    redisContext *link;
    int script;
    int keys;
    char key[WORDS][WORD];
    bool is_seen[HLI_SCRIPT_COUNT];
} watch;

/* Takes the next quoted word, as it stands there. */
static bool watch_take(const char **line, char word[WORD])
{
    const char *from = strchr(*line, '"'), *at = from ? from + 1 : NULL;
    if (!at)
        return false;
    while (*at != '"' || at[-1] == '\\')
        at++;
    snprintf(word, WORD, "%.*s", (int)(at - from - 1), from + 1);
    *line = at + 1;
    return true;
}

static int watch_script_of(const char *sha1)
{
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++)
        if (strcmp(hli_script_get((hli_script_id)id)->sha1, sha1) == 0)
            return id;
    fatal("not a script of ours: %s", sha1);
}

static void watch_request(const char *line)
{
    char word[WORD];
    watch.script = -1;
    if (!watch_take(&line, word))
        return;
    if (strcmp(word, "EVAL") == 0) { /* of a greeting */
        watch.script = HLI_SCRIPT_TERM;
        watch.is_seen[watch.script] = true;
    }
    if (strcmp(word, "EVALSHA") != 0)
        return;
    must(watch_take(&line, word));
    watch.script = watch_script_of(word);
    watch.is_seen[watch.script] = true;
    must(watch_take(&line, word));
    watch.keys = atoi(word);
    must(watch.keys <= WORDS);
    for (int i = 0; i < watch.keys; i++)
        must(watch_take(&line, watch.key[i]));
}

/* The hold keys of other owners' readers are known to no caller: where they cannot be seen, the
 * script counts the reader as living, or changes nothing. */
static bool watch_knows(const char *key)
{
    bool looks_at_others =
        watch.script == HLI_SCRIPT_RW_READ_RELEASE || watch.script == HLI_SCRIPT_RW_WRITE_ACQUIRE ||
        watch.script == HLI_SCRIPT_RW_WRITE_RELEASE || watch.script == HLI_SCRIPT_RW_FORCE_RELEASE;
    for (int i = 0; i < watch.keys; i++)
        if (strcmp(watch.key[i], key) == 0)
            return true;
    return looks_at_others && strstr(key, ":rwlock_timeout:") != NULL;
}

static void watch_command(const char *line)
{
    char command[WORD], key[WORD];
    must(watch_take(&line, command) && watch.script >= 0);
    if (strcmp(command, "TIME") == 0 || strcmp(command, "SPUBLISH") == 0)
        return;
    if (watch.script == HLI_SCRIPT_TERM) /* the node alone knows which key it has */
        return;
    check_msg(strcmp(command, "PUBLISH") != 0, "%s publishes to the whole cluster",
              hli_script_get((hli_script_id)watch.script)->name);
    if (strcmp(command, "PUBSUB") == 0) {
        must(watch_take(&line, key));
        check_str(key, "SHARDNUMSUB");
        return;
    }
    while (watch_take(&line, key)) {
        check_msg(watch_knows(key), "%s: %s %s is not declared",
                  hli_script_get((hli_script_id)watch.script)->name, command, key);
        if (strcmp(command, "DEL") != 0 && strcmp(command, "EXISTS") != 0)
            break;
    }
}

static void watch_begin(void)
{
    watch = (struct watch){.link = redis_link_connect(redis_server_socket(server)), .script = -1};
    must(watch.link);
    freeReplyObject(redisCommand(watch.link, "MONITOR"));
}

/* Judges all that was run so far. */
static void watch_judge(void)
{
    redis_do(server, "ECHO the-watch-is-over");
    for (bool is_over = false; !is_over;) {
        redisReply *reply = NULL;
        must(redisGetReply(watch.link, (void **)&reply) == REDIS_OK);
        const char *line = strchr(reply->str, ']');
        is_over = strstr(reply->str, "the-watch-is-over") != NULL;
        if (line && strstr(reply->str, " lua] "))
            watch_command(line);
        else if (line)
            watch_request(line);
        freeReplyObject(reply);
    }
}

static void watch_end(void)
{
    watch_judge();
    redisFree(watch.link);
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++)
        check_msg(watch.is_seen[id], "%s was not run", hli_script_get((hli_script_id)id)->name);
}

/* This client holds, the other one waits, and gets it. */
static void hand_over(hl_lock *held, hl_lock *waiting)
{
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(held, ERR));
    actor_begin_acquire(other, waiting, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(rival, 1);
    expect_ok(hl_lock_release(held, ERR));
    expect_ok(actor_end(other));
    expect_ok(actor_release(other, waiting, NULL));
}

static void use_locks(void)
{
    hl_lock *stock = new_lock(client, "stock"), *rivals = new_lock(rival, "stock");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hand_over(stock, rivals);
    expect_ok(hl_lock_acquire(stock, ERR));
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{stock}"));
    wait_stat(client, renewals, 1);
    expect_outcome(hl_lock_try_acquire(rivals, NULL), HL_EBUSY);
    expect_ok(hl_lock_inspect(stock, &info, ERR));
    expect_ok(hl_lock_force_release(rivals, ERR));
    hl_lock_release(stock, NULL);
}

/* A wait of a second has a tag. */
static void use_long_waits(void)
{
    hl_lock *held = new_lock(client, "long"), *waiting = new_lock(rival, "long");
    struct actor *other = actor_start();
    struct deadline deadline = deadline_in(20000);
    expect_ok(hl_lock_acquire(held, ERR));
    actor_begin_acquire(other, waiting, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    while (!watch.is_seen[HLI_SCRIPT_WAITER_TAG]) {
        check_msg(!deadline_is_over(deadline), "it never wrote the tag of its wait");
        deadline_nap();
        watch_judge();
    }
    expect_ok(hl_lock_release(held, ERR));
    expect_ok(actor_end(other));
    expect_ok(actor_release(other, waiting, NULL));
}

/* Without a tag, which a tenure that is kept must not have shown. */
static void use_kept_locks(void)
{
    hl_client *own = open_worded(NULL);
    hl_lock *stock = new_lock_with(
        own, "kept", &(hl_lock_options){.size = sizeof(hl_lock_options), .retain_ms = 500});
    struct deadline deadline = deadline_in(20000);
    while (!watch.is_seen[HLI_SCRIPT_LOCK_KEEP]) {
        check_msg(!deadline_is_over(deadline), "it never asked whether it may be kept");
        expect_ok(hl_lock_acquire(stock, ERR));
        expect_ok(hl_lock_release(stock, ERR));
        watch_judge();
    }
}

#define DATA(text) .key = "d{stock}", .value = (text), .value_length = strlen(text)
#define WRITE(...) (&(hl_fenced_write){.size = sizeof(hl_fenced_write), __VA_ARGS__})

static void use_fences(void)
{
    hl_lock *lock = NULL, *rivals = NULL;
    expect_ok(fenced_lock_new(client, "{stock}f", NULL, &lock, ERR));
    expect_ok(fenced_lock_new(rival, "{stock}f", NULL, &rivals, ERR));
    keep_lock(lock);
    keep_lock(rivals);
    hand_over(lock, rivals);
    expect_ok(hl_lock_raise_token(lock, 100, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_set_and_release(lock, NULL, WRITE(DATA("a")), ERR));
    expect_ok(hl_fence_set(client, WRITE(DATA("b"), .token = 200), ERR));
}

static void use_fair_locks(void)
{
    hl_lock *lock = NULL, *rivals = NULL;
    expect_ok(fair_lock_new(client, "fair", NULL, &lock, ERR));
    expect_ok(fair_lock_new(rival, "fair", NULL, &rivals, ERR));
    keep_lock(lock);
    keep_lock(rivals);
    hand_over(lock, rivals);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_force_release(rivals, ERR));
    hl_lock_release(lock, NULL);
}

static void use_multi_locks(void)
{
    hl_lock *members[] = {new_lock(client, "a{m}"), new_lock(client, "b{m}")};
    hl_lock *busy = new_lock(rival, "b{m}"), *both = NULL;
    struct actor *other = actor_start();
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, ERR));
    keep_lock(both);
    expect_ok(hl_lock_acquire(both, ERR));
    expect_ok(hl_lock_release(both, ERR));
    expect_ok(hl_lock_acquire(busy, ERR));
    expect_outcome(hl_lock_try_acquire(both, NULL), HL_EBUSY);
    actor_begin_acquire(other, both, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(busy, ERR));
    expect_ok(actor_end(other));
    expect_ok(actor_release(other, both, NULL));
}

/* Of one server, which may be a cluster. */
static void use_redlocks(void)
{
    const hl_redlock_options options = {
        .size = sizeof options, .name = "red", .flags = HL_REDLOCK_NO_RESTART_DELAY};
    hl_lock *lock = NULL, *rivals = NULL;
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_redlock_new_with(&client, 1, &options, &lock, ERR));
    expect_ok(hl_redlock_new_with(&rival, 1, &options, &rivals, ERR));
    keep_lock(lock);
    keep_lock(rivals);
    hand_over(lock, rivals);
    uint64_t renewals = stats_of(client).renewals;
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(client, renewals, renewals + 1);
    expect_ok(hl_lock_inspect(rivals, &info, ERR));
    expect_ok(hl_lock_force_release(rivals, ERR));
    hl_lock_release(lock, NULL);
}

static void use_rw_locks(void)
{
    hl_lock *half[2] = {NULL, NULL}, *rivals[2] = {NULL, NULL};
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_owner *second = new_owner(client);
    expect_ok(rw_lock_new(client, "book", NULL, &half[0], &half[1], ERR));
    expect_ok(rw_lock_new(
        rival, "book",
        &(hl_lock_options){.size = sizeof(hl_lock_options), .flags = HL_LOCK_PREFER_WRITERS},
        &rivals[0], &rivals[1], ERR));
    for (int i = 0; i < 2; i++) {
        keep_lock(half[i]);
        keep_lock(rivals[i]);
    }
    expect_ok(hl_lock_acquire(half[0], ERR));
    expect_ok(hl_lock_acquire(half[0], ERR));
    expect_ok(hl_lock_acquire_with(half[0], ACQUIRE(.owner = second, .min_hold_ms = 50), ERR));
    wait_stat(client, renewals, stats_of(client).renewals + 2);
    expect_ok(hl_lock_update_lease(half[0], NULL, slow_ms(5000), ERR));
    expect_ok(hl_lock_release(half[0], ERR));
    expect_ok(hl_lock_release_as(half[0], second, ERR));
    expect_ok(hl_lock_release(half[0], ERR));
    hand_over(half[0], rivals[1]);
    hand_over(half[1], rivals[0]);
    expect_ok(hl_lock_acquire(half[1], ERR));
    expect_ok(hl_lock_acquire(half[0], ERR)); /* a writer that reads as well */
    expect_ok(hl_lock_inspect(half[1], &info, ERR));
    expect_ok(hl_lock_release(half[1], ERR));
    expect_ok(hl_lock_force_release(rivals[0], ERR));
    hl_lock_release(half[0], NULL);
}

/* Holds that are brought into a new term. */
static void use_reclaims(void)
{
    grace_serve(server, false);
    hl_client *own = open_worded(
        CLIENT(.failover_grace_ms = slow_ms(20000), .watchdog_timeout_ms = slow_ms(20000)));
    hl_lock *lock = new_lock(own, "brought"), *read = NULL, *write = NULL;
    hl_permits *permits = NULL;
    hl_permit permit;
    expect_ok(rw_lock_new(own, "brought{rw}", NULL, &read, &write, ERR));
    keep_lock(read);
    keep_lock(write);
    expect_ok(hl_permits_new(own, "brought{p}", &permits, ERR));
    free_at_end(permits, (void (*)(void *))hl_permits_free);
    expect_ok(hl_permits_set_total(permits, 1, 0, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_acquire(read, ERR));
    expect_ok(hl_permits_acquire(permits, &permit, ERR));
    grace_new_term(server);
    wait_stat(own, reclaims, 3);
    expect_ok(hl_permits_release(permits, &permit, ERR));
    expect_ok(hl_lock_release(read, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    close_client(own);
}

/* Waits that are cancelled while their request is under way give back what it got. */
static void undo_an_acquire(hl_semaphore *semaphore)
{
    static struct recorder told = RECORDER_INIT;
    struct deadline deadline = deadline_in(20000);
    for (int n = 1; !watch.is_seen[HLI_SCRIPT_SEMAPHORE_UNDO]; n++) {
        check_msg(!deadline_is_over(deadline), "no acquire was undone");
        hl_cancel *cancel = new_cancel();
        expect_ok(hl_semaphore_acquire_async(
            semaphore, 1, WAIT(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel), record_done, &told));
        hl_cancel_fire(cancel);
        check(recorder_wait(&told, n));
        if (recorder_entry(&told, n - 1).code == HL_OK)
            expect_ok(hl_semaphore_release(semaphore, 1, ERR));
        expect_ok(hl_client_ping(client, -1, ERR));
        watch_judge();
    }
}

static void use_semaphores(void)
{
    hl_semaphore *semaphore = NULL;
    int64_t count = 0;
    expect_ok(hl_semaphore_new(client, "stalls", &semaphore, ERR));
    free_at_end(semaphore, (void (*)(void *))hl_semaphore_free);
    expect_ok(hl_semaphore_try_set_permits(semaphore, 2, 0, ERR));
    expect_ok(hl_semaphore_acquire(semaphore, 2, ERR));
    expect_outcome(hl_semaphore_acquire_for(semaphore, 1, 20, NULL), HL_ETIMEDOUT);
    expect_ok(hl_semaphore_release(semaphore, 2, ERR));
    undo_an_acquire(semaphore);
    expect_ok(hl_semaphore_available(semaphore, &count, ERR));
    expect_ok(hl_semaphore_drain(semaphore, &count, ERR));
    expect_ok(hl_semaphore_add_permits(semaphore, 1, ERR));
}

static void use_latches(void)
{
    hl_latch *latch = NULL;
    int64_t count = 0;
    expect_ok(hl_latch_new(client, "gate", &latch, ERR));
    free_at_end(latch, (void (*)(void *))hl_latch_free);
    expect_ok(hl_latch_try_set_count(latch, 2, ERR));
    expect_ok(hl_latch_count_down(latch, ERR));
    expect_ok(hl_latch_count(latch, &count, ERR));
    expect_outcome(hl_latch_await_for(latch, 20, NULL), HL_ETIMEDOUT);
    expect_ok(hl_latch_count_down(latch, ERR));
    expect_ok(hl_latch_try_set_count(latch, 1, ERR));
    expect_ok(hl_latch_delete(latch, ERR));
}

static void use_permits(void)
{
    hl_permits *permits = NULL;
    hl_permit permit, three[3];
    int64_t count = 0;
    expect_ok(hl_permits_new(client, "seats", &permits, ERR));
    free_at_end(permits, (void (*)(void *))hl_permits_free);
    expect_ok(hl_permits_set_total(permits, 3, 0, ERR));
    expect_ok(hl_permits_add(permits, 1, ERR));
    expect_ok(hl_permits_acquire(permits, &permit, ERR));
    expect_ok(hl_permits_acquire_many(permits, 3, NULL, three, ERR));
    expect_ok(hl_permits_lease_left(permits, &permit, &count, ERR));
    expect_ok(hl_permits_update_lease(permits, &permit, 0, ERR));
    wait_stat(client, renewals, stats_of(client).renewals + 2);
    expect_ok(hl_permits_available(permits, &count, ERR));
    expect_ok(hl_permits_release(permits, &permit, ERR));
    expect_ok(hl_permits_release_many(permits, three, 3, ERR));
    expect_ok(hl_permits_delete(permits, ERR));
}

Law(wording, of_a_cluster_declares_every_key_that_a_script_touches)
{
    if (!redis_program_is_7())
        skip("sharded messages are new in Redis 7.0");
    begin();
    watch_begin();
    use_locks();
    use_long_waits();
    use_kept_locks();
    use_fences();
    use_fair_locks();
    use_multi_locks();
    use_redlocks();
    use_rw_locks();
    use_semaphores();
    use_reclaims();
    use_latches();
    use_permits();
    watch_end();
}

/* ---- The mailboxes of a name ---- */

static int listeners(const char *channel)
{
    redisReply *reply = redis_command(server, "PUBSUB SHARDNUMSUB %s", channel);
    must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    int count = (int)reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

static void check_grant_in_mailbox(const char *name, const char *mailbox)
{
    static char channel[256];
    if (!redis_program_is_7())
        skip("sharded messages are new in Redis 7.0");
    begin();
    hl_lock *held = new_lock(client, name), *waiting = new_lock(rival, name);
    struct recorder told = RECORDER_INIT;
    hl_owner *owner = new_owner(rival);
    snprintf(channel, sizeof channel, "%s:%s", mailbox, hl_client_id(rival));
    expect_ok(hl_lock_acquire(held, ERR));
    check_int(listeners(channel), 0);
    expect_ok(
        hl_lock_acquire_async(waiting, ACQUIRE(.owner = owner, .wait_ms = -1), record_done, &told));
    expect_settled_wait(waiting);
    check_int(listeners(channel), 1);
    check_int(listeners(mailbox), 1); /* our own channel, by the same command */
    expect_ok(hl_lock_release(held, ERR));
    expect_story(&told, "done HL_OK");
    check_int(stats_of(rival).grants, 1);
    expect_ok(hl_lock_release_as(waiting, owner, ERR));
}

Law(wording, of_a_cluster_lets_grants_come_by_the_names_own_mailbox)
{
    check_grant_in_mailbox("stock", "hirelock:{stock}");
}

Law(wording, of_a_cluster_leaves_the_braces_of_a_name_as_they_are)
{
    check_grant_in_mailbox("order:{42}:l", "hirelock:order:{42}:l");
}

/* ---- Retained locks ---- */

static bool is_retained(hl_lock *lock)
{
    pthread_mutex_lock(&lock->handle.name->mutex);
    const struct hli_tenure *tenure = lock->handle.name->current;
    bool is = tenure && tenure->state == HLI_TENURE_IDLE;
    bool hears = lock->handle.name->contention && lock->handle.name->contention->confirmed_at > 0;
    pthread_mutex_unlock(&lock->handle.name->mutex);
    check_msg(!is || hears, "it is retained by a client that does not listen");
    return is;
}

Law(wording, of_a_cluster_lets_a_client_retain_what_it_would_be_asked_for)
{
    begin();
    client = open_worded(NULL);
    hl_lock *stock = new_lock_with(
        client, "stock", &(hl_lock_options){.size = sizeof(hl_lock_options), .retain_ms = 1000});
    hl_lock *rivals = new_lock(rival, "stock");
    struct deadline deadline = deadline_in(20000);
    do {
        check(!deadline_is_over(deadline));
        expect_ok(hl_lock_acquire(stock, ERR));
        expect_ok(hl_lock_release(stock, ERR));
    } while (!is_retained(stock));
    expect_ok(hl_lock_acquire(rivals, ERR)); /* long before the poll, by its want */
    expect_ok(hl_lock_release(rivals, ERR));
}
