/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The holder looks that it still has the lock, stands still for longer than its lease, and then
 * does what it was about to do. */
#include "naive.h"

#include "support/process.h"

enum { HOLDS, GO_ON, DONE };

static void hold_and_write_late(struct process *self, void *arg)
{
    struct naive *a = naive_at(server, "A");
    (void)arg;
    check(naive_take(a, "job", SHORT_MS));
    check_str(naive_do(a, "GET job"), "A"); /* it has the lock */
    process_tell(self, HOLDS);
    process_await(self, GO_ON, 1, 60000); /* it is stopped here */
    naive_do(a, "SET stock written-by-A");
    process_tell(self, DONE);
}

/* Stops it for longer than its lease; returns when its lock is gone. */
static void pause_past_its_lease(struct process *holder)
{
    check(process_await(holder, HOLDS, 1, 20000));
    process_stop(holder);
    check(redis_wait_int(server, 0, 60000, "EXISTS job"));
}

static void go_on(struct process *holder)
{
    process_tell(holder, GO_ON);
    process_continue(holder);
    check(process_await(holder, DONE, 1, 20000));
}

SingleLaw(naive, holder_that_was_paused_writes_over_the_next_one)
{
    struct process *a = process_start(hold_and_write_late, NULL);
    struct naive *b = naive_at(server, "B");

    pause_past_its_lease(a);
    check(naive_take(b, "job", 60000));
    naive_do(b, "SET stock written-by-B");
    go_on(a);
    check_str(naive_do(b, "GET stock"), "written-by-A");
    tell_figure("naive: B holds 'job', and A has written over B's stock");
}

static hl_lock *new_fenced(hl_client *client)
{
    return new_lock_with(
        client, "job", &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = HL_LOCK_FENCED});
}

static int write_stock(hl_client *client, const char *value, uint64_t token, hl_error *err)
{
    hl_fenced_write write = HL_FENCED_WRITE_INIT;
    write.key = "stock";
    write.value = value;
    write.value_length = strlen(value);
    write.token = token;
    return hl_fence_set(client, &write, err);
}

static void hold_and_write_late_with_a_token(struct process *self, void *arg)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = SHORT_MS));
    hl_lock *a = new_fenced(client);
    (void)arg;
    expect_ok(hl_lock_acquire(a, ERR));
    uint64_t token = hl_lock_token(a, NULL);
    check(hl_lock_is_held(a, NULL)); /* it has the lock */
    process_tell(self, HOLDS);
    process_await(self, GO_ON, 1, 60000); /* it is stopped here */
    expect_outcome(write_stock(client, "written-by-A", token, ERR), HL_EFENCED);
    process_tell(self, DONE);
    close_client(client);
}

SingleLaw(ours, late_write_is_refused_by_the_data)
{
    struct process *a = process_start(hold_and_write_late_with_a_token, NULL);

    pause_past_its_lease(a);
    hl_client *client = open_client(NULL);
    hl_lock *b = new_fenced(client);
    expect_ok(hl_lock_acquire(b, ERR));
    expect_ok(write_stock(client, "written-by-B", hl_lock_token(b, NULL), ERR));
    go_on(a);
    check_int(process_finish(a, 20000), 0);
    check_str(redis_str(server, "GET stock"), "written-by-B");
    tell_figure("ours: A's late write has a smaller token than B's, and is refused");
}
