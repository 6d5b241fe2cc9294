/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The holder's tag of every kind of lock that has one holder: in an inspection, and in the answer
 * to whoever finds it busy. */

#include <poll.h>

#include "lease/name.h"
#include "lease/tag.h"
#include "support/recorder.h"
#include "sync/lock.h"
#include "tags.h"

struct halves {
    hl_lock *read, *write;
};

static struct halves new_rw(hl_client *client)
{
    struct halves halves = {NULL, NULL};
    expect_ok(hl_rw_lock_new(client, "stock", NULL, &halves.read, &halves.write, NULL));
    return halves;
}

/* A call on `rival`, which some owner's lock is in the way of. */
static void expect_told(hl_lock *rival, int64_t wait_ms)
{
    hl_lock_info busy = HL_LOCK_INFO_INIT;
    expect_outcome(
        hl_lock_acquire_with(rival, ACQUIRE(.wait_ms = wait_ms, .ret_busy = &busy), NULL),
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
    expect_told(rival, 30);
    expect_ok(hl_lock_release(held, NULL));
    hl_lock_info info = inspected(rival);
    check(!info.locked);
    expect_no_tag(&info);
    hl_lock_free(held);
    hl_lock_free(rival);
}

Law(holder_tag, is_told_of_a_fair_lock)
{
    hl_lock *held = NULL, *rival = NULL;
    expect_ok(hl_fair_lock_new(open_client(TAGS), "stock", NULL, &held, NULL));
    expect_ok(hl_fair_lock_new(open_client(TAGS), "stock", NULL, &rival, NULL));
    expect_told_of(held, rival);
}

Law(holder_tag, is_told_of_a_fenced_lock)
{
    hl_lock *held = NULL, *rival = NULL;
    expect_ok(hl_fenced_lock_new(open_client(TAGS), "stock", NULL, &held, NULL));
    expect_ok(hl_fenced_lock_new(open_client(TAGS), "stock", NULL, &rival, NULL));
    expect_told_of(held, rival);
}

Law(holder_tag, is_told_of_a_spin_lock)
{
    hl_lock *held = NULL, *rival = NULL;
    expect_ok(hl_spin_lock_new(open_client(TAGS), "stock", NULL, &held, NULL));
    expect_ok(hl_spin_lock_new(open_client(TAGS), "stock", NULL, &rival, NULL));
    expect_told_of(held, rival);
}

Law(holder_tag, is_told_of_a_writer_to_writers_and_readers)
{
    struct halves own = new_rw(open_client(TAGS)), rivals = new_rw(open_client(TAGS));
    name_me("keeper");
    expect_ok(hl_lock_acquire(own.write, NULL));
    expect_tag(rivals.write, "keeper");
    expect_told(rivals.write, 0);
    expect_told(rivals.write, 30);
    expect_told(rivals.read, 0);
    expect_told(rivals.read, 30);
    hl_lock_info info = inspected(rivals.read); /* nobody reads */
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
    expect_outcome(
        hl_lock_acquire_with(rivals.write, ACQUIRE(.wait_ms = 0, .ret_busy = &busy), NULL),
        HL_EBUSY);
    expect_no_tag(&busy);
    expect_ok(hl_lock_release(own.read, NULL));
    free_lock(own.read);
    free_lock(own.write);
    free_lock(rivals.read);
    free_lock(rivals.write);
}

Law(holder_tag, is_told_of_each_member_of_a_multi_lock_and_of_the_one_that_is_busy)
{
    hl_client *client = open_client(TAGS), *rival = open_client(TAGS);
    hl_lock *mine[] = {new_lock(client, "shelf"), new_lock(client, "stock")};
    hl_lock *its[] = {new_lock(rival, "shelf"), new_lock(rival, "stock")}, *both = NULL;
    expect_ok(hl_multi_lock_new(its, 2, NULL, &both, NULL));
    name_me("keeper");
    expect_ok(hl_lock_acquire(mine[1], NULL));
    expect_tag(its[1], "keeper");
    expect_told(both, 0);
    expect_told(both, 30);
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
    struct hli_name *name = hli_lock_find_name(lock, owner);
    check(name != NULL);
    pthread_mutex_lock(&name->mutex);
    const struct hli_tenure *tenure = hli_name_hold_of(name, owner);
    check(tenure != NULL && tenure->tag != NULL);
    check_str(tenure->tag->thread, "keeper");
    pthread_mutex_unlock(&name->mutex);
    hli_name_unref(name);
}

#define DISPATCHED CLIENT(.flags = HL_CLIENT_TAGS | HL_CLIENT_DISPATCH)

Law(holder_tag, names_the_thread_that_called_when_what_it_got_first_was_over)
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
