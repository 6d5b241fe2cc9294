/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The server answers TRYAGAIN, as a node of a cluster does while a slot moves and a declared key is
 * not there: what needs the lock's key alone goes on at once.
 */
#include "lease/calls/client.h"
#include "redis/script.h"
#include "support/deadline.h"
#include "support/fake_server.h"
#include "support/kit.h"
#include "support/wording.h"

#include <stdatomic.h>

static struct fake_server *fake;
static hl_client *client;

enum { MOST_KEYS = 4 };

/* Requests by script and number of keys; and the script whose next request is refused, or -1. */
static atomic_int requests[HLI_SCRIPT_COUNT][MOST_KEYS + 1], refused;

static bool answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)arg;
    for (int id = 0; id < HLI_SCRIPT_COUNT && resp_command_begins(command, "EVALSHA"); id++) {
        if (!resp_command_arg_is(command, 1, hli_script_get((hli_script_id)id)->sha1))
            continue;
        atomic_fetch_add(&requests[id][command->argv[2][0] - '0'], 1);
        int expected = id;
        if (!atomic_compare_exchange_strong(&refused, &expected, -1))
            return false;
        fake_reply_text(reply, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
        return true;
    }
    return false;
}

static void fake_up(void)
{
    refused = -1;
    fake = fake_server_start(answer, NULL);
}

static void fake_down(void)
{
    server_down();
    fake_server_stop(fake);
}

#define FakeLaw(suite, ...) Test(suite, __VA_ARGS__, .init = fake_up, .fini = fake_down)

static void begin(const hl_client_options *options)
{
    client = open_client_at(fake_server_url(fake), options);
    word_as(client, &hli_wording_cluster);
}

static int count_of(hli_script_id id, int keys)
{
    return atomic_load(&requests[id][keys]);
}

static void refuse_once(hli_script_id id)
{
    atomic_store(&refused, (int)id);
}

FakeLaw(slot_that_moves, lets_a_lock_be_tried_and_released_with_its_key_alone)
{
    begin(NULL);
    hl_lock *lock = new_lock(client, "stock");
    refuse_once(HLI_SCRIPT_LOCK_ACQUIRE);
    expect_ok(hl_lock_try_acquire(lock, ERR));
    check_int(count_of(HLI_SCRIPT_LOCK_ACQUIRE, 2), 1);
    check_int(count_of(HLI_SCRIPT_LOCK_ACQUIRE, 1), 1);
    expect_ok(hl_lock_release(lock, ERR)); /* for a moment no other key is declared */
    check_int(count_of(HLI_SCRIPT_LOCK_RELEASE, 1), 1);
}

FakeLaw(slot_that_moves, lets_a_lock_be_released_with_its_key_alone)
{
    begin(NULL);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    refuse_once(HLI_SCRIPT_LOCK_RELEASE);
    expect_ok(hl_lock_release(lock, ERR));
    check_int(count_of(HLI_SCRIPT_LOCK_RELEASE, 2), 1);
    check_int(count_of(HLI_SCRIPT_LOCK_RELEASE, 1), 1);
}

static unsigned refusals_now(void)
{
    pthread_mutex_lock(&client->calls_mutex);
    unsigned refusals = client->refusals;
    pthread_mutex_unlock(&client->calls_mutex);
    return refusals;
}

/* Of one slot after the other, each of whose moves is over when the call is sent again. */
FakeLaw(slot_that_moves, again_and_again_does_not_make_calls_wait_longer_each_time)
{
    hl_semaphore *semaphore = NULL;

    begin(CLIENT(.poll_ms = slow_ms(60000)));
    expect_ok(hl_semaphore_new(client, "permits", &semaphore, ERR));
    free_at_end(semaphore, (void (*)(void *))hl_semaphore_free);
    for (int round = 0; round < 5; round++) {
        refuse_once(HLI_SCRIPT_SEMAPHORE_ADD);
        expect_ok(hl_semaphore_release(semaphore, 1, ERR));
        check(refusals_now() <= 1);
        struct deadline quiet = deadline_in(300); /* longer than a pause */
        while (!deadline_is_over(quiet))
            expect_ok(hl_client_ping(client, -1, ERR));
    }
}

static bool were_renewed_alone(void *arg)
{
    (void)arg;
    return count_of(HLI_SCRIPT_LOCK_RENEW, 1) >= 2;
}

FakeLaw(slot_that_moves, lets_each_lock_of_a_batch_be_renewed_alone)
{
    begin(CLIENT(.watchdog_timeout_ms = slow_ms(1500)));
    hl_lock *a = new_lock(client, "{s}a"), *b = new_lock(client, "{s}b");
    refuse_once(HLI_SCRIPT_LOCK_RENEW);
    expect_ok(hl_lock_acquire(a, ERR));
    expect_ok(hl_lock_acquire(b, ERR));
    check(wait_until(were_renewed_alone, NULL, 10000));
    check(hl_lock_is_held(a, NULL) && hl_lock_is_held(b, NULL));
    check_int(stats_of(client).losses, 0);
}
