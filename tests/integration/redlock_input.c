/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What hl_redlock_new refuses, and the words that say what to do. */

#include "support/kinds.h"
#include "support/masters.h"

static hl_client *clients[40];

static void three_up(void)
{
    masters_up_with(3, NULL);
    hl_client **opened = open_masters(CLIENT(.watchdog_timeout_ms = 20000));
    for (size_t i = 0; i < 40; i++)
        clients[i] = opened[i % 3];
}

static void expect_refused(size_t count, const char *name, const hl_redlock_options *options,
                           const char *why)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = NULL;
    hl_redlock_options named = options ? *options : (hl_redlock_options)HL_REDLOCK_OPTIONS_INIT;
    named.name = name;
    expect_outcome(hl_redlock_new_with(clients, count, &named, &lock, &err), HL_EINVAL);
    check_has(err.text, why);
    check(lock == NULL);
}

#define ThreeLaw(name) Test(redlock_input, name, .init = three_up, .fini = server_down)

ThreeLaw(refuses_a_number_of_masters_that_is_even_or_out_of_range)
{
    expect_refused(0, "stock", NULL, "0 clients: a Redlock has 1 to 31");
    expect_refused(2, "stock", NULL,
                   "2 clients: give an odd number, for 2 survive no more failures");
    expect_refused(33, "stock", NULL, "33 clients: a Redlock has 1 to 31");
}

ThreeLaw(refuses_a_client_that_is_missing_or_given_twice)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = NULL;
    expect_refused(5, "stock", NULL, "clients 1 and 4 are of the same server");
    clients[1] = open_client_at(redis_server_url(masters.server[0]), NULL);
    expect_refused(3, "stock", NULL,
                   "clients 1 and 2 are of the same server: each needs a master of its own");
    clients[1] = NULL;
    expect_refused(3, "stock", NULL, "client 2 of 3: it is NULL");
    expect_outcome(hl_redlock_new(NULL, 3, "stock", &lock, &err), HL_EINVAL);
    check_has(err.text, "the clients or ret_lock is NULL");
    expect_outcome(hl_redlock_new(clients, 1, "stock", NULL, NULL), HL_EINVAL);
    expect_refused(1, NULL, NULL, "the name is NULL");
}

ThreeLaw(refuses_a_client_that_is_closed)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = NULL;
    hl_client *closed = clients[2];
    lock = new_redlock_of(clients, 3, "stock", NULL); /* keeps its memory */
    close_client(closed);
    expect_outcome(hl_redlock_new(clients, 3, "stock", &lock, &err), HL_ECLOSED);
    check_has(err.text, "client 3 of 3: the client is closed");
}

ThreeLaw(refuses_names_and_options_that_are_not_allowed)
{
    expect_refused(3, "", NULL, "the name is empty");
    expect_refused(3, "a{", NULL, "braces");
    expect_refused(3, "stock", REDLOCK(.flags = 8), "flags hold what this version does not know");
    expect_refused(3, "stock", REDLOCK(.vote_timeout_ms = -1), "vote_timeout_ms is not from 1 to");
    expect_refused(3, "stock", REDLOCK(.retry_min_ms = 60001), "retry_min_ms is not from 1 to");
    expect_refused(3, "stock", REDLOCK(.retry_min_ms = 20, .retry_max_ms = 10),
                   "retry_max_ms is less than retry_min_ms");
    expect_refused(3, "stock", REDLOCK(.max_lease_ms = 19999),
                   "max_lease_ms is less than the client's watchdog_timeout_ms");
    expect_refused(3, "stock", &(hl_redlock_options){.size = 0}, "the options");
}

ThreeLaw(takes_names_of_any_bytes_and_the_first_clients_prefix)
{
    hl_client **prefixed = open_masters(CLIENT(.name_prefix = "shop:"));
    hl_lock *lock = new_redlock_of(prefixed, 3, "a\0b",
                                   REDLOCK(.flags = HL_REDLOCK_NO_RESTART_DELAY, .name_length = 3));
    size_t length = 0;
    check_str(hl_lock_name(lock, &length), "shop:a");
    check_int(length, 8);
    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < 3; i++)
        check(redis_wait_int(masters.server[i], 1, 5000, "EXISTS %b", "shop:a\0b", (size_t)8));
    expect_ok(hl_lock_release(lock, ERR));
}

ThreeLaw(wants_the_same_masters_of_all_handles_of_a_name)
{
    hl_client *others[3] = {clients[0], clients[2], clients[1]};
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = new_redlock_of(clients, 3, "stock", NULL), *other = NULL;
    hl_lock *same = new_redlock_of(clients, 3, "stock", NULL);
    expect_outcome(hl_redlock_new(others, 3, "stock", &other, &err), HL_EINVAL);
    check_has(err.text, "give the same clients in the same order");
    expect_ok(hl_lock_acquire(lock, ERR));
    check(hl_lock_is_held(same, NULL)); /* they are one lock */
    expect_ok(hl_lock_release(same, ERR));
    free_lock(lock);
    free_lock(same);
}

ThreeLaw(is_no_member_of_a_multi_lock_and_has_no_new_lease)
{
    hl_lock *lock = new_redlock_of(clients, 3, "stock", NULL), *both = NULL;
    hl_lock *members[] = {lock, new_lock(clients[0], "shop")};
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_multi_lock_new(members, 2, NULL, &both, &err), HL_EINVAL);
    check_has(err.text, "a member is a Redlock, which stands alone");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_outcome(hl_lock_update_lease(lock, NULL, 1000, &err), HL_ENOTSUP);
    check_has(err.text, "a Redlock on several masters keeps the lease of its acquire");
    expect_outcome(hl_lock_set_and_release(lock, NULL,
                                           &(hl_fenced_write){.size = sizeof(hl_fenced_write),
                                                              .key = "data",
                                                              .value = "1",
                                                              .value_length = 1},
                                           ERR),
                   HL_ENOTSUP);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
}

ThreeLaw(outlives_its_clients_as_any_handle_does)
{
    hl_lock *lock = new_redlock_of(clients, 3, "stock", NULL);
    expect_ok(hl_lock_acquire(lock, ERR));
    for (int i = 0; i < 3; i++)
        close_client(clients[i]);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_ECLOSED);
    check(!hl_lock_is_held(lock, NULL));
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_outcome(hl_lock_inspect(lock, &info, ERR), HL_ECLOSED);
}
