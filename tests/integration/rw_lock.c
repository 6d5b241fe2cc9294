/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The read-write lock: which holders exclude each other, how it nests, and what it reports. */

#include "redis/script.h"
#include "rw_kit.h"
#include "support/kinds.h"

RwLaw(rw_lock, many_read_at_once)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    struct actor *other = actor_start();
    expect_ok(hl_lock_try_acquire(a.read, NULL));
    expect_ok(actor_acquire(other, a.read, ACQUIRE(.wait_ms = 0)));
    expect_ok(hl_lock_try_acquire(b.read, NULL));
    expect_state("read 3");
    check(hl_lock_is_held(a.read, NULL));
    check(actor_holds(other, a.read, NULL));
    check(!hl_lock_is_held(a.write, NULL));
    expect_ok(hl_lock_release(a.read, NULL));
    check(actor_holds(other, a.read, NULL));
    expect_outcome(hl_lock_release(a.read, NULL), HL_ENOTOWNER);
    expect_ok(actor_release(other, a.read, NULL));
    expect_state("read 1");
    expect_ok(hl_lock_release(b.read, NULL));
    expect_state("");
}

RwLaw(rw_lock, a_writer_is_alone)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    struct actor *other = actor_start();
    expect_ok(hl_lock_try_acquire(a.write, NULL));
    expect_state("write 1");
    expect_outcome(hl_lock_try_acquire(b.write, NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(b.read, NULL), HL_EBUSY);
    expect_outcome(actor_acquire(other, a.write, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    expect_outcome(actor_acquire(other, a.read, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    expect_outcome(actor_release(other, a.write, NULL), HL_ENOTOWNER);
    expect_ok(hl_lock_release(a.write, NULL));
    expect_ok(actor_acquire(other, a.write, ACQUIRE(.wait_ms = 0)));
    expect_ok(actor_release(other, a.write, NULL));
}

RwLaw(rw_lock, a_reader_keeps_writers_out)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    struct actor *other = actor_start();
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_outcome(hl_lock_try_acquire(b.write, NULL), HL_EBUSY);
    expect_outcome(actor_acquire(other, a.write, ACQUIRE(.wait_ms = 0)), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(b.write, 20, NULL), HL_ETIMEDOUT);
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(hl_lock_try_acquire(b.write, NULL));
    expect_ok(hl_lock_release(b.write, NULL));
}

RwLaw(rw_lock, reads_and_writes_nest)
{
    struct rw rw = rw_new(open_client(NULL));
    for (int i = 1; i <= 3; i++) {
        expect_ok(hl_lock_acquire(rw.read, NULL));
        check_int(hl_lock_hold_count(rw.read, NULL), i);
    }
    check(redis_wait_int(server, 4, 5000, "DBSIZE")); /* a hold key for each level */
    for (int i = 2; i >= 0; i--) {
        expect_ok(hl_lock_release(rw.read, NULL));
        check_int(hl_lock_hold_count(rw.read, NULL), i);
    }
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL));
    check_int(hl_lock_hold_count(rw.write, NULL), 2);
    check_int(hl_lock_hold_count(rw.read, NULL), 0);
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_state("write 1");
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_state("");
}

RwLaw(rw_lock, a_writer_reads_as_well_and_both_nest_in_any_order)
{
    struct rw rw = rw_new(open_client(NULL)), other = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL)); /* it writes already */
    expect_state("write 2");
    expect_outcome(hl_lock_try_acquire(other.read, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_state("write 1");
    expect_outcome(hl_lock_try_acquire(other.read, NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire(rw.read, NULL)); /* with a field that was not used before */
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_state("");
}

RwLaw(rw_lock, a_writer_that_reads_goes_on_as_a_reader)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_ok(hl_lock_release(a.write, NULL));
    expect_state("read 1");
    check(hl_lock_is_held(a.read, NULL));
    check(!hl_lock_is_held(a.write, NULL));
    expect_ok(hl_lock_try_acquire(b.read, NULL));
    expect_outcome(hl_lock_try_acquire(b.write, NULL), HL_EDEADLK);
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(hl_lock_release(b.read, NULL));
}

RwLaw(rw_lock, a_reader_that_wants_to_write_is_refused_at_once)
{
    struct rw rw = rw_new(open_client(NULL));
    hl_error err = HL_ERROR_INIT;
    hl_owner *owner = new_owner(rw.client);
    struct recorder recorder = RECORDER_INIT;
    expect_ok(hl_lock_acquire(rw.read, NULL));
    int64_t calls = redis_evalsha_calls(server);
    expect_outcome(hl_lock_acquire(rw.write, &err), HL_EDEADLK);
    check(strstr(err.text, "'stock'") && strstr(err.text, "itself"));
    expect_outcome(hl_lock_acquire_for(rw.write, 10, NULL), HL_EDEADLK);
    check_int(redis_evalsha_calls(server), calls);
    check_int(stats_of(rw.client).waiters_now, 0);
    expect_outcome(hl_lock_acquire_with(rw.write, ACQUIRE(.owner = owner), NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = owner), NULL));
    expect_outcome(hl_lock_acquire_async(rw.write, ACQUIRE(.owner = owner), record_done, &recorder),
                   HL_EDEADLK);
    expect_ok(hl_lock_release_as(rw.read, owner, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
    expect_ok(hl_lock_try_acquire(rw.write, NULL)); /* it holds nothing any more */
    expect_ok(hl_lock_release(rw.write, NULL));
    check_int(recorder_count(&recorder), 0);
}

RwLaw(rw_lock, a_writer_that_went_on_as_a_reader_is_refused_like_any_reader)
{
    struct rw rw = rw_new(open_client(NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_outcome(hl_lock_acquire(rw.write, NULL), HL_EDEADLK);
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock, explicit_owners_of_one_thread_are_many)
{
    struct rw rw = rw_new(open_client(NULL));
    hl_owner *a = new_owner(rw.client), *b = new_owner(rw.client);
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = a), NULL));
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = b), NULL));
    check(hl_lock_is_held(rw.read, a));
    check(!hl_lock_is_held(rw.read, NULL));
    expect_state("read 2");
    expect_ok(hl_lock_release_as(rw.read, a, NULL));
    expect_outcome(hl_lock_release_as(rw.read, a, NULL), HL_ENOTOWNER);
    expect_ok(hl_lock_release_as(rw.read, b, NULL));
    expect_ok(hl_lock_acquire_with(rw.write, ACQUIRE(.owner = a), NULL));
    expect_outcome(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = b), NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire_with(rw.read, ACQUIRE(.owner = a), NULL));
    expect_ok(hl_lock_release_as(rw.write, a, NULL));
    expect_ok(hl_lock_release_as(rw.read, a, NULL));
}

RwLaw(rw_lock, handles_of_one_name_are_the_same_lock)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(a.client);
    expect_ok(hl_lock_acquire(a.read, NULL));
    check(hl_lock_is_held(b.read, NULL));
    expect_ok(hl_lock_acquire(b.read, NULL));
    check_int(hl_lock_hold_count(a.read, NULL), 2);
    expect_ok(hl_lock_release(a.read, NULL));
    expect_ok(hl_lock_release(b.read, NULL));
    expect_outcome(hl_lock_release(b.read, NULL), HL_ENOTOWNER);
    check_str(hl_lock_name(a.read, NULL), "stock");
    check_str(hl_lock_name(a.write, NULL), "stock");
}

RwLaw(rw_lock, is_asynchronous)
{
    struct rw rw = rw_new(open_client(NULL));
    hl_owner *a = new_owner(rw.client), *b = new_owner(rw.client), *w = new_owner(rw.client);
    struct recorder readers = RECORDER_INIT, writer = RECORDER_INIT;
    expect_ok(hl_lock_acquire_async(rw.read, ACQUIRE(.owner = a), record_done, &readers));
    expect_ok(hl_lock_acquire_async(rw.read, ACQUIRE(.owner = b), record_done, &readers));
    expect_story(&readers, "done HL_OK, done HL_OK");
    expect_ok(hl_lock_acquire_async(rw.write, ACQUIRE(.owner = w, .wait_ms = HL_WAIT_FOREVER),
                                    record_done, &writer));
    expect_ok(hl_lock_release_async(rw.read, a, record_done, &readers));
    expect_ok(hl_lock_release_async(rw.read, b, record_done, &readers));
    expect_story(&readers, "done HL_OK, done HL_OK, done HL_OK, done HL_OK");
    expect_story(&writer, "done HL_OK");
    check(hl_lock_is_held(rw.write, w));
    expect_ok(hl_lock_release_async(rw.write, w, record_done, &writer));
    expect_story(&writer, "done HL_OK, done HL_OK");
}

RwLaw(rw_lock, a_busy_answer_names_the_holder)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_outcome(acquire_past(b.read, ACQUIRE(), &info), HL_EBUSY);
    check(info.locked && !info.mine);
    check(strncmp(info.owner, hl_client_id(a.client), 36) == 0);
    check(strlen(info.owner) > 6 && strcmp(info.owner + strlen(info.owner) - 6, ":write") == 0);
    check(info.lease_left_ms > 20000 && info.lease_left_ms <= 30000);
    expect_ok(hl_lock_release(a.write, NULL));
    expect_ok(hl_lock_acquire(a.read, NULL));
    expect_outcome(acquire_past(b.write, ACQUIRE(), &info), HL_EBUSY);
    check(strncmp(info.owner, hl_client_id(a.client), 36) == 0);
    check_int(info.hold_count, 1);
    expect_ok(hl_lock_release(a.read, NULL));
}

static hl_lock_info inspected(hl_lock *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    return info;
}

RwLaw(rw_lock, inspect_knows_the_halves)
{
    struct rw a = rw_new(open_client(NULL)), b = rw_new(open_client(NULL));
    struct recorder recorder = RECORDER_INIT;
    check(!inspected(a.read).locked && !inspected(a.write).locked);
    expect_ok(hl_lock_acquire(a.read, NULL));
    check(inspected(a.read).locked && inspected(a.read).mine);
    check(inspected(b.read).locked && !inspected(b.read).mine);
    check(!inspected(a.write).locked);
    for (int i = 0; i < 50; i++)
        expect_ok(hl_lock_acquire_with(b.read, ACQUIRE(.owner = new_owner(b.client)), NULL));
    check(inspected(a.read).mine); /* one of 51 */
    check(inspected(a.read).lease_left_ms > 20000);
    expect_ok(hl_lock_release(a.read, NULL));
    check(!inspected(a.read).mine);
    expect_ok(hl_lock_force_release(a.read, NULL));
    expect_ok(hl_lock_acquire(a.write, NULL));
    expect_ok(hl_lock_acquire(a.write, NULL));
    check(redis_wait_int(server, 2, 5000, "HGET stock %s", inspected(a.write).owner));
    check(inspected(b.write).locked && !inspected(b.write).mine);
    check_int(inspected(b.write).hold_count, 2);
    check(!inspected(b.read).locked);
    expect_ok(hl_lock_acquire(a.read, NULL));
    check(inspected(b.read).locked); /* by its writer */
    expect_ok(hl_lock_inspect_async(a.write, record_info, &recorder));
    check(recorder_wait_says(&recorder, "info locked mine 2"));
    expect_ok(hl_lock_force_release(b.write, NULL));
}

RwLaw(rw_lock, options_and_names_are_like_a_locks)
{
    hl_client *client = open_client(CLIENT(.name_prefix = "shop:"));
    hl_lock *read = NULL, *write = NULL;
    const hl_lock_options retains = {.size = sizeof(retains), .retain_ms = 10},
                          unknown = {.size = sizeof(unknown), .flags = 1u << 30},
                          prefers = {.size = sizeof(prefers), .flags = HL_LOCK_PREFER_WRITERS},
                          bytes = {.size = sizeof(bytes), .name_length = 3};
    expect_outcome(rw_lock_new(client, "a", &retains, &read, &write, NULL), HL_EINVAL);
    expect_outcome(rw_lock_new(client, "a", &unknown, &read, &write, NULL), HL_EINVAL);
    expect_outcome(rw_lock_new(client, "a{", NULL, &read, &write, NULL), HL_EINVAL);
    expect_outcome(
        rw_lock_new(open_client(NULL), "hirelock_rw_writer:{a}", NULL, &read, &write, NULL),
        HL_EINVAL);
    expect_outcome(rw_lock_new(client, NULL, NULL, &read, &write, NULL), HL_EINVAL);
    expect_outcome(rw_lock_new(NULL, "a", NULL, &read, &write, NULL), HL_EINVAL);
    expect_outcome(lock_new_with(client, "a", &prefers, &read, NULL), HL_EINVAL);
    check(!read && !write);
    expect_ok(rw_lock_new(client, "a\0b", &bytes, &read, &write, NULL));
    expect_ok(hl_lock_acquire(write, NULL));
    check_str(redis_str(server, "HGET %b mode", "shop:a\0b", (size_t)8), "write");
    expect_ok(hl_lock_acquire(read, NULL));
    expect_ok(hl_lock_release(write, NULL));
    expect_ok(hl_lock_release(read, NULL));
    hl_lock_free(read);
    hl_lock_free(write);
}

RwLaw(rw_lock, a_lock_without_nesting_refuses_a_nested_acquire)
{
    const hl_lock_options flat = {.size = sizeof(flat), .flags = HL_LOCK_NON_REENTRANT};
    struct rw rw = rw_new_with(open_client(NULL), &flat);
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_outcome(hl_lock_acquire(rw.write, NULL), HL_EDEADLK);
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_outcome(hl_lock_acquire(rw.read, NULL), HL_EDEADLK);
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock, a_posted_release_wakes_waiters)
{
    const hl_lock_options posted = {.size = sizeof(posted), .flags = HL_LOCK_ASYNC_RELEASE};
    struct rw a = rw_new_with(open_client(NULL), &posted), b = rw_new_deaf();
    for (int i = 0; i < 20; i++) {
        expect_ok(hl_lock_acquire(a.write, NULL));
        expect_ok(hl_lock_acquire(a.read, NULL));
        struct actor *reader = rw_waits(b.read);
        expect_waiters(b.client, 1);
        expect_ok(hl_lock_release(a.write, NULL));
        expect_ok(actor_end(reader));
        expect_ok(hl_lock_release(a.read, NULL));
        expect_ok(actor_release(reader, b.read, NULL));
        actor_stop(reader);
    }
}

/* Its script is not there, the acquire's is: the release is sent again, behind the next acquire,
 * and may not take what that has got. */
RwLaw(rw_lock, a_posted_release_that_bounced_takes_nothing_from_the_next_hold)
{
    const hl_lock_options posted = {.size = sizeof(posted), .flags = HL_LOCK_ASYNC_RELEASE};
    struct rw rw = rw_new_with(open_client(NULL), &posted);
    expect_ok(hl_lock_acquire(rw.write, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    const struct hli_script *take = hli_script_get(HLI_SCRIPT_RW_READ_ACQUIRE);
    for (int i = 0; i < 20; i++) {
        redis_do(server, "SCRIPT FLUSH");
        redis_do(server, "SCRIPT LOAD %b", (const char *)take->text, take->length);
        expect_ok(hl_lock_release(rw.read, NULL));
        expect_ok(hl_lock_acquire(rw.read, NULL));
        expect_ok(hl_client_ping(rw.client, -1, NULL));
        expect_state("write 2");
    }
    expect_ok(hl_lock_release(rw.write, NULL));
    expect_state("read 1");
    expect_ok(hl_lock_release(rw.read, NULL));
}

RwLaw(rw_lock, another_kind_of_lock_of_the_same_name_is_busy)
{
    struct rw rw = rw_new(open_client(NULL));
    hl_lock *plain = new_lock(rw.client, "stock");
    expect_ok(hl_lock_acquire(plain, NULL));
    expect_outcome(hl_lock_try_acquire(rw.read, NULL), HL_EBUSY);
    expect_outcome(hl_lock_try_acquire(rw.write, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(plain, NULL));
    expect_ok(hl_lock_acquire(rw.read, NULL));
    expect_outcome(hl_lock_try_acquire(plain, NULL), HL_EBUSY);
    expect_ok(hl_lock_release(rw.read, NULL));
    redis_do(server, "SET stock 7");
    expect_outcome(hl_lock_acquire(rw.read, NULL), HL_ESERVER);
    expect_outcome(hl_lock_acquire(rw.write, NULL), HL_ESERVER);
    redis_do(server, "DEL stock");
}
