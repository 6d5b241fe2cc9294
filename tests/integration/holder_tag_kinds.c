/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The holder's tag of every kind of lock that has one holder: in an inspection, and in the answer
 * to whoever finds it busy. */

#include <poll.h>

#include "lease/hold/tag.h"
#include "lease/state/name.h"
#include "support/kinds.h"
#include "support/recorder.h"
#include "sync/lock/lock.h"
#include "tags.h"

struct halves {
    hl_lock *read, *write;
};

static struct halves new_rw(hl_client *client)
{
    struct halves halves = {NULL, NULL};
    expect_ok(rw_lock_new(client, "stock", NULL, &halves.read, &halves.write, NULL));
    return halves;
}

/* A call on `rival`, which some owner's lock is in the way of. */
static void expect_told(hl_lock *rival, int64_t wait_ms)
{
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_outcome(acquire_past(rival, ACQUIRE(.wait_ms = wait_ms), &busy),
                   wait_ms == 0 ? HL_EBUSY : HL_ETIMEDOUT);
    expect_in_tag(&busy, "keeper");
}

/* Both are freed. */
static void expect_told_of(hl_lock *held, hl_lock *rival)
{
    name_me("keeper");
    expect_ok(hl_lock_acquire(held, NULL));
    expect_tag(rival, "keeper");
    expect_told(rival, 0);
    expect_told(rival, slow_ms(3000));
    expect_ok(hl_lock_release(held, NULL));
    /* The rival that gave up a moment ago may be granted the lock, and lets it go at once. */
    check(redis_wait_int(server, 0, 5000, "EXISTS stock"));
    hl_lock_info info = inspected(rival);
    check(!info.locked);
    expect_no_tag(&info);
    hl_lock_free(held);
    hl_lock_free(rival);
}

Law(holder_tag, is_told_of_a_fair_lock)
{
    hl_lock *held = NULL, *rival = NULL;
    expect_ok(fair_lock_new(open_client(TAGS), "stock", NULL, &held, NULL));
    expect_ok(fair_lock_new(open_client(TAGS), "stock", NULL, &rival, NULL));
    expect_told_of(held, rival);
}

Law(holder_tag, is_told_of_a_fenced_lock)
{
    hl_lock *held = NULL, *rival = NULL;
    expect_ok(fenced_lock_new(open_client(TAGS), "stock", NULL, &held, NULL));
    expect_ok(fenced_lock_new(open_client(TAGS), "stock", NULL, &rival, NULL));
    expect_told_of(held, rival);
}

Law(holder_tag, is_told_of_a_spin_lock)
{
    hl_lock *held = NULL, *rival = NULL;
    expect_ok(spin_lock_new(open_client(TAGS), "stock", NULL, &held, NULL));
    expect_ok(spin_lock_new(open_client(TAGS), "stock", NULL, &rival, NULL));
    expect_told_of(held, rival);
}

Law(holder_tag, is_told_of_a_writer_to_writers_and_readers)
{
    struct halves own = new_rw(open_client(TAGS)), rivals = new_rw(open_client(TAGS));
    name_me("keeper");
    expect_ok(hl_lock_acquire(own.write, NULL));
    expect_tag(rivals.write, "keeper");
    expect_told(rivals.write, 0);
    expect_told(rivals.write, slow_ms(3000));
    expect_told(rivals.read, 0);
    expect_told(rivals.read, slow_ms(3000));
    hl_lock_info info = inspected(rivals.read); /* no reader holds it */
    expect_no_tag(&info);
    expect_ok(hl_lock_release(own.write, NULL));
    info = inspected(rivals.write);
    expect_no_tag(&info);
    free_lock(own.read);
    free_lock(own.write);
    free_lock(rivals.read);
    free_lock(rivals.write);
}

/* There may be many of them, and each could speak for itself only. */
Law(holder_tag, is_not_told_of_readers)
{
    struct halves own = new_rw(open_client(TAGS)), rivals = new_rw(open_client(TAGS));
    hl_lock *later = new_lock(open_client(TAGS), "later");
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(own.read, NULL));
    expect_ok(hl_lock_acquire(later, NULL));
    check(wait_until(has_tag, later, 10000)); /* so one of the reader would be there, too */
    check_int(redis_int(server, "EXISTS " KEY), 0);
    expect_outcome(acquire_past(rivals.write, ACQUIRE(.wait_ms = 0), &busy), HL_EBUSY);
    expect_no_tag(&busy);
    expect_ok(hl_lock_release(own.read, NULL));
    free_lock(own.read);
    free_lock(own.write);
    free_lock(rivals.read);
    free_lock(rivals.write);
}

Law(holder_tag, is_told_of_each_member_of_a_multi_lock_and_of_the_busy_member)
{
    hl_client *client = open_client(TAGS), *rival = open_client(TAGS);
    hl_lock *mine[] = {new_lock(client, "shelf"), new_lock(client, "stock")};
    hl_lock *its[] = {new_lock(rival, "shelf"), new_lock(rival, "stock")}, *both = NULL;
    expect_ok(hl_multi_lock_new(its, 2, NULL, &both, NULL));
    name_me("keeper");
    expect_ok(hl_lock_acquire(mine[1], NULL));
    expect_tag(its[1], "keeper");
    expect_told(both, 0);
    expect_told(both, slow_ms(3000));
    expect_ok(hl_lock_release(mine[1], NULL));
    expect_ok(hl_lock_acquire(both, NULL));
    expect_tag(mine[0], "keeper");
    expect_tag(mine[1], "keeper");
    expect_ok(hl_lock_release(both, NULL));
    hl_lock_free(both);
}

/* The hold that it gets then is tagged like the first one. */
static void wait_again(hl_client *client, hl_lock *lock)
{
    struct recorder told = RECORDER_INIT;
    hl_owner *owner = new_owner(client);
    struct pollfd look = {.fd = hl_client_fd(client), .events = POLLIN};
    name_me("keeper");
    expect_ok(hl_lock_acquire_async(
        lock, ACQUIRE(.wait_ms = -1, .lease_ms = slow_ms(60), .owner = owner), record_done, &told));
    check_int(poll(&look, 1, (int)slow_ms(5000)), 1);
    check(redis_wait_int(server, 0, 5000, "EXISTS stock")); /* the caller sleeps past the lease */
    name_me("dispatcher");
    while (recorder_count(&told) == 0) {
        hl_client_dispatch(client);
        check_int(recorder_count(&told) > 0 || poll(&look, 1, (int)slow_ms(5000)) == 1, 1);
    }
    expect_story(&told, "done HL_OK");
    struct hli_name *name = hli_lock_look_up(lock, owner, hli_name_find);
    check(name != NULL);
    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    check(tenure != NULL && tenure->tag != NULL);
    check_str(tenure->tag->thread, "keeper");
    pthread_mutex_unlock(&name->mutex);
    hli_name_unref(name);
}

#define DISPATCHED CLIENT(.flags = HL_CLIENT_HOLDER_INFO | HL_CLIENT_DISPATCH)

Law(holder_tag, names_the_thread_that_called_when_its_first_hold_was_over)
{
    hl_client *client = open_client(DISPATCHED);
    wait_again(client, new_lock(client, "stock"));
}

Law(holder_tag, names_the_thread_that_called_when_its_fair_wait_began_anew)
{
    hl_client *client = open_client(DISPATCHED);
    setenv("HL_TEST_HANDLE", "fair", 1);
    wait_again(client, new_lock(client, "stock"));
}

static bool holds_one(void *client)
{
    return atomic_load(&((hl_client *)client)->counters.holds_now) == 1;
}

static bool holds_none(void *client)
{
    return atomic_load(&((hl_client *)client)->counters.holds_now) == 0;
}

/* The call loses a member while it waits for another one. It acquires that member again, and this
 * hold has a tag too. */
Law(holder_tag, is_told_of_a_multi_lock_that_began_anew)
{
    static struct recorder told = RECORDER_INIT;
    hl_client *client =
        open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO, .watchdog_timeout_ms = slow_ms(1000)));
    hl_lock *both = NULL, *members[] = {new_lock(client, "stock"), new_lock(client, "work")};
    name_me("keeper");
    redis_do(server, "HSET work stranger:1 1");
    redis_do(server, "PEXPIRE work 600000");
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    expect_ok(hl_lock_acquire_async(
        keep_lock(both), ACQUIRE(.owner = new_owner(client), .wait_ms = -1), record_done, &told));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{work}"));
    check(wait_until(holds_one, client, 10000)); /* it has the answer that queued it */
    redis_do(server, "DEL stock");
    check(wait_until(holds_none, client, 10000));
    redis_do(server, "DEL work");
    redis_do(server, "PUBLISH redisson_lock__channel:{work} 0");
    expect_story(&told, "done HL_OK");
    expect_tag(new_lock(open_client(TAGS), "stock"), "keeper");
}
