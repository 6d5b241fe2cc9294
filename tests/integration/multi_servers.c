/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The multi-lock whose members are at several servers, while all of these work. */

#include "multi_servers_kit.h"
#include "support/actor.h"
#include "support/events.h"
#include "support/recorder.h"
#include "support/redis_program.h"
#include "support/topologies.h"

static struct recorder told = RECORDER_INIT;

SingleLaw(multi_servers, hold_all_members_or_none)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2 c3");
    expect_ok(hl_lock_acquire(multi, ERR));
    check(hl_lock_is_held(multi, NULL));
    expect_keys_at("a1 b2 c3", 1);
    expect_keys_at("b1 c1 a2 c2 a3 b3", 0);
    expect_ok(hl_lock_release(multi, ERR));
    check(!hl_lock_is_held(multi, NULL));
    expect_nothing_left_at_all();
}

static int64_t requests_at(int number)
{
    return redis_evalsha_calls(site[number].server);
}

/* In the order of their names the members of a server stand apart. */
SingleLaw(multi_servers, are_asked_once_each_while_no_member_is_busy)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2 c1 d2 e1");
    expect_ok(hl_lock_acquire(multi, ERR)); /* loads the scripts */
    expect_ok(hl_lock_release(multi, ERR));
    expect_nothing_left_at_all();
    int64_t first = requests_at(1), second = requests_at(2);
    expect_ok(hl_lock_acquire(multi, ERR));
    check_int(requests_at(1) - first, 1);
    check_int(requests_at(2) - second, 1);
    expect_ok(hl_lock_release(multi, ERR));
    check_int(requests_at(1) - first, 2);
    check_int(requests_at(2) - second, 2);
    check_int(requests_at(3), 0);
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers, keep_nothing_when_a_member_is_busy_and_the_call_does_not_wait)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2 c1 d3");
    hl_error err = HL_ERROR_INIT;
    stranger_takes_at("d3");
    expect_outcome(hl_lock_try_acquire(multi, &err), HL_EBUSY);
    check_str(err.busy.owner, "0a1b2c3d-0000-4000-8000-1234567890ab:71");
    check_has(err.text, "acquire 'd'");
    expect_keys_at("a1 b2 c1", 0);
    stranger_leaves_at("d3");
    expect_nothing_left_at_all();
    check_int(stats_of(site[3].client).busy, 1);
    check_int(stats_of(site[1].client).holds_now, 0);
}

/* c, of the first server, was acquired by one request with a; it comes after b in the order that
 * all callers share. */
SingleLaw(multi_servers, hold_what_precedes_a_busy_member_and_nothing_that_follows_it)
{
    sites_open(CLIENT(.poll_ms = 30000));
    hl_lock *multi = new_multi_at("c1 b2 a1");
    stranger_takes_at("b2");
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1));
    expect_queue_at("b2", 1);
    expect_keys_at("a1", 1);
    expect_keys_at("c1", 0);
    hl_lock *c = new_lock(site[1].client, "c");
    expect_ok(hl_lock_acquire_for(c, 10000, ERR));
    stranger_leaves_at("b2");
    expect_queue_at("c1", 0); /* it waits behind the owner of its own client */
    expect_keys_at("a1 b2", 1);
    expect_ok(hl_lock_release(c, ERR));
    expect_ok(actor_end(waiter));
    expect_keys_at("a1 b2 c1", 1);
    expect_ok(actor_release(waiter, multi, NULL));
    expect_nothing_left_at_all();
}

static void run_id_at(int number, char ret_id[41])
{
    const char *id = strstr(redis_str(site[number].server, "INFO server"), "run_id:");
    check(id && strlen(id) > 7 + 40);
    memcpy(ret_id, id + 7, 40);
    ret_id[40] = '\0';
}

/* "x2", if the run id of the second server is the first of all, or the last. */
static void find_x(bool last, char ret_place[3])
{
    char best[41], id[41];
    int found = 1;
    run_id_at(1, best);
    for (int i = 2; i <= SITES; i++) {
        run_id_at(i, id);
        if ((strcmp(id, best) > 0) != last)
            continue;
        memcpy(best, id, sizeof best);
        found = i;
    }
    snprintf(ret_place, 3, "x%d", found);
}

/* Of equal names no order is known to all: a caller holds one while it waits for another only for
 * some moments. */
SingleLaw(multi_servers, give_way_at_equal_names)
{
    char first[3], last[3];
    sites_open(CLIENT(.poll_ms = 30000));
    find_x(false, first);
    find_x(true, last);
    hl_lock *multi = new_multi_at("x1 x2 x3"), *alone = new_lock(site[first[1] - '0'].client, "x");
    check_str(hl_lock_name(multi, NULL), "x,x,x");
    stranger_takes_at(last);
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1));
    expect_queue_at(last, 1);
    expect_keys_at(first, 0); /* soon */
    expect_ok(hl_lock_acquire_for(alone, 10000, ERR));
    stranger_leaves_at(last);
    expect_queue_at(last, 0);
    expect_ok(hl_lock_release(alone, ERR));
    expect_ok(actor_end(waiter));
    expect_keys_at("x1 x2 x3", 1);
    expect_ok(actor_release(waiter, multi, NULL));
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers, refuse_one_lock_that_is_a_member_by_two_clients)
{
    hl_client *clients[] = {NULL, open_client(NULL), open_client(NULL)};
    site[1].server = server;
    hl_lock *multi = new_multi_of_clients(clients, "x1 x2");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_try_acquire(multi, &err), HL_EDEADLK);
    check_str(err.text, "acquire 'x': it is a member twice, by two clients of one server");
    expect_nothing_left_at_all();
    expect_outcome(hl_lock_acquire(multi, ERR), HL_EDEADLK);
    expect_nothing_left_at_all();
    stranger_takes_at("x1");
    expect_outcome(hl_lock_try_acquire(multi, ERR), HL_EBUSY);
}

SingleLaw(multi_servers, refuse_an_async_call_without_a_completion)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2");
    hl_owner *owner = new_owner(site[2].client);
    expect_outcome(hl_lock_acquire_async(multi, ACQUIRE(.owner = owner), NULL, NULL), HL_EINVAL);
    expect_nothing_left_at_all();
    expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner), ERR));
    expect_outcome(hl_lock_release_async(multi, owner, NULL, NULL), HL_EINVAL);
    check_int(hl_lock_hold_count(multi, owner), 1);
    expect_ok(hl_lock_release_as(multi, owner, ERR));
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers, accept_an_owner_of_any_of_their_clients)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2");
    hl_owner *owner[SITES + 1];
    for (int i = 1; i <= SITES; i++)
        owner[i] = new_owner(site[i].client);
    for (int i = 1; i <= 2; i++) {
        expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner[i]), ERR));
        expect_ok(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner[i]), ERR));
        check_int(hl_lock_hold_count(multi, owner[i]), 2);
        check(!hl_lock_is_held(multi, owner[3 - i]) && !hl_lock_is_held(multi, NULL));
        expect_outcome(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner[3 - i]), ERR), HL_EBUSY);
        expect_outcome(hl_lock_release_as(multi, owner[3 - i], ERR), HL_ENOTOWNER);
        expect_ok(hl_lock_release_as(multi, owner[i], ERR));
        check(hl_lock_is_held(multi, owner[i]));
        expect_ok(hl_lock_release_as(multi, owner[i], ERR));
    }
    expect_outcome(hl_lock_acquire_with(multi, ACQUIRE(.owner = owner[3]), ERR), HL_EINVAL);
    expect_outcome(hl_lock_release_as(multi, owner[3], ERR), HL_EINVAL);
    expect_outcome(hl_lock_acquire_async(multi, NULL, record_done, &told), HL_EINVAL);
    expect_outcome(hl_lock_release_async(multi, NULL, record_done, &told), HL_EINVAL);
    expect_nothing_left_at_all();
}

static void expect_thread_of(int entry, hl_client *client)
{
    static struct recorder pinged = RECORDER_INIT;
    int count = recorder_count(&pinged);
    expect_ok(hl_client_ping_async(client, 5000, record_done, &pinged));
    check(recorder_wait(&pinged, count + 1));
    check(
        pthread_equal(recorder_entry(&told, entry).thread, recorder_entry(&pinged, count).thread));
}

SingleLaw(multi_servers, call_back_in_the_thread_of_the_client_of_the_first_member_that_was_given)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("c3 b2 a1");
    hl_owner *owner = new_owner(site[1].client);
    expect_ok(hl_lock_acquire_async(multi, ACQUIRE(.owner = owner), record_done, &told));
    check(recorder_wait(&told, 1));
    expect_ok(hl_lock_inspect_async(multi, record_info, &told));
    check(recorder_wait(&told, 2));
    expect_ok(hl_multi_lock_release_each_async(multi, owner, record_codes, &told));
    check(recorder_wait(&told, 3));
    expect_ok(hl_lock_force_release_async(multi, record_done, &told));
    expect_story(&told, "done HL_OK, info locked mine 1, codes HL_OK HL_OK HL_OK, done HL_ENOENT");
    for (int i = 0; i < 4; i++)
        expect_thread_of(i, site[3].client);
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers, call_back_where_the_first_client_dispatches)
{
    site_open(1, CLIENT(.flags = HL_CLIENT_DISPATCH));
    site_open(2, NULL);
    hl_client *clients[] = {NULL, site[1].client, site[2].client};
    hl_lock *multi = new_multi_of_clients(clients, "b1 a2");
    hl_owner *owner = new_owner(site[1].client);
    struct deadline deadline = deadline_of_wait(5000);
    expect_ok(hl_lock_acquire_async(multi, ACQUIRE(.owner = owner), record_done, &told));
    expect_keys_at("b1 a2", 1);
    check(!hl_lock_is_held(multi, owner)); /* nobody was told */
    while (hl_client_dispatch(site[1].client) == 0 && !deadline_is_over(deadline))
        deadline_nap();
    expect_story(&told, "done HL_OK");
    check(hl_lock_is_held(multi, owner));
    expect_ok(hl_lock_release_as(multi, owner, ERR));
    expect_nothing_left_at_all();
}

static struct events events[SITES + 1];

SingleLaw(multi_servers, are_renewed_and_lost_by_each_members_own_client)
{
    for (int i = 1; i <= 2; i++)
        site_open(i, CLIENT(.watchdog_timeout_ms = i * SHORT_MS, .on_event = count_event,
                            .arg = &events[i]));
    hl_client *clients[] = {NULL, site[1].client, site[2].client};
    hl_lock *multi = new_multi_of_clients(clients, "b1 a2");
    int codes[2];
    expect_ok(hl_lock_acquire(multi, ERR));
    wait_stat(site[1].client, renewals, 3);
    wait_stat(site[2].client, renewals, 2);
    check(hl_lock_is_held(multi, NULL));
    redis_do(site[2].server, "DEL a");
    check(events_wait(&events[2], HL_EVENT_LOST, 1, 10000));
    check(!hl_lock_is_held(multi, NULL));
    check_int(hl_lock_validity_ms(multi, NULL), 0);
    expect_keys_at("b1", 1);
    expect_outcome(hl_multi_lock_release_each(multi, NULL, codes, ERR), HL_ELOST);
    check_int(codes[0], HL_OK);
    check_int(codes[1], HL_ELOST);
    check_int(events_told(&events[1], HL_EVENT_LOST), 0);
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers, have_lease_times_that_begin_when_all_members_are_held)
{
    sites_open(CLIENT(.poll_ms = 100));
    hl_lock *multi = new_multi_at("a1 b2");
    int64_t lease_ms = slow_ms(2000);
    stranger_takes_at("b2");
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1, .lease_ms = lease_ms));
    expect_queue_at("b2", 1);
    wait_stat(site[1].client, renewals, 2); /* a is renewed while it is not all */
    stranger_leaves_at("b2");
    expect_ok(actor_end(waiter));
    check(actor_holds(waiter, multi, NULL));
    expect_keys_at("a1 b2", 0); /* soon */
    expect_outcome(actor_release(waiter, multi, NULL), HL_ELOST);
}

SingleLaw(multi_servers, can_be_inspected_and_released_by_force)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2 c3");
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_outcome(hl_lock_force_release(multi, ERR), HL_ENOENT);
    expect_ok(hl_lock_inspect(multi, &info, ERR));
    check(!info.locked);
    stranger_takes_at("b2");
    expect_ok(hl_lock_inspect(multi, &info, ERR));
    check(info.locked && !info.mine);
    expect_ok(hl_lock_force_release(multi, ERR));
    expect_ok(hl_lock_acquire(multi, ERR));
    expect_ok(hl_lock_inspect(multi, &info, ERR));
    check(info.locked && info.mine);
    expect_ok(hl_lock_force_release(multi, ERR));
    expect_nothing_left_at_all();
}

/* Kinds that cannot share a request, and so are asked one by one in the order of all. */
SingleLaw(multi_servers, have_members_of_every_kind)
{
    sites_open(CLIENT(.poll_ms = 100));
    hl_lock_kind kinds[] = {HL_LOCK_FAIR, HL_LOCK_READ,  HL_LOCK_FENCED,
                            HL_LOCK_SPIN, HL_LOCK_WRITE, HL_LOCK_REENTRANT};
    hl_lock *members[6], *multi = NULL;
    for (int i = 0; i < 6; i++)
        members[i] =
            new_lock_with(site[1 + i % 2].client, (char[]){(char)('a' + i), '\0'},
                          &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = kinds[i]});
    expect_ok(hl_multi_lock_new(members, 6, NULL, &multi, ERR));
    keep_lock(multi);
    expect_ok(hl_lock_acquire(multi, ERR));
    expect_keys_at("a1 b2 c1 d2 e1 f2", 1);
    check(hl_lock_token(members[2], NULL) > 0);
    expect_ok(hl_lock_release(multi, ERR));
    stranger_takes_at("f2");
    expect_outcome(hl_lock_try_acquire(multi, ERR), HL_EBUSY);
    expect_keys_at("a1 b2 c1 d2 e1", 0);
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1));
    expect_queue_at("f2", 1);
    expect_keys_at("a1 b2 c1 d2 e1", 1);
    stranger_leaves_at("f2");
    expect_ok(actor_end(waiter));
    expect_ok(actor_release(waiter, multi, NULL));
    expect_keys_at("a1 b2 c1 d2 e1 f2", 0);
}

SingleLaw(multi_servers, keep_a_hold_that_the_owner_had_of_a_member)
{
    sites_open(NULL);
    hl_lock *multi = new_multi_at("a1 b2 c1 d2"), *b = new_lock(site[2].client, "b");
    expect_ok(hl_lock_acquire(b, ERR));
    expect_ok(hl_lock_acquire(multi, ERR));
    check_int(hl_lock_hold_count(b, NULL), 2);
    expect_ok(hl_lock_release(multi, ERR));
    check_int(hl_lock_hold_count(b, NULL), 1);
    stranger_takes_at("d2");
    expect_outcome(hl_lock_try_acquire(multi, ERR), HL_EBUSY);
    expect_outcome(hl_lock_acquire_for(multi, 50, ERR), HL_ETIMEDOUT);
    check_int(hl_lock_hold_count(b, NULL), 1);
    expect_keys_at("a1 c1", 0);
    stranger_leaves_at("d2");
    expect_ok(hl_lock_release(b, ERR));
    expect_nothing_left_at_all();
}

SingleLaw(multi_servers, are_refused_where_a_client_is_closed_or_a_name_has_two_kinds)
{
    sites_open(NULL);
    hl_lock *a = new_lock(site[1].client, "a"), *b = new_lock(site[2].client, "b"), *multi = NULL;
    hl_lock *fair =
        new_lock_with(site[2].client, "b",
                      &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = HL_LOCK_FAIR});
    hl_lock *others =
        new_lock_with(site[3].client, "b",
                      &(hl_lock_options){.size = sizeof(hl_lock_options), .kind = HL_LOCK_FAIR});
    expect_outcome(hl_multi_lock_new((hl_lock *[]){a, b, fair}, 3, NULL, &multi, ERR), HL_EINVAL);
    expect_ok(hl_multi_lock_new((hl_lock *[]){a, b, others, b}, 4, NULL, &multi, ERR));
    check_str(hl_lock_name(multi, NULL), "a,b,b");
    hl_lock_free(multi);
    close_client(site[2].client);
    expect_outcome(hl_multi_lock_new((hl_lock *[]){a, b}, 2, NULL, &multi, ERR), HL_ECLOSED);
}

/* A cluster's slots are the same for all its clients. */
ClusterLaw(multi_servers, may_be_a_cluster_and_a_single_server)
{
    struct redis_server *single = redis_server_start(NULL);
    hl_client *clients[] = {NULL, open_client_at(cluster_url(cluster), CLIENT(.poll_ms = 30000)),
                            open_client_at(redis_server_url(single), CLIENT(.poll_ms = 30000))};
    hl_lock *multi = new_multi_of_clients(clients, "area1 bay2 cask1 den2 bay1");
    expect_ok(hl_lock_acquire(multi, ERR));
    const char *const names[] = {"area", "bay", "cask"};
    for (int i = 0; i < 3; i++)
        check_int(redis_int(cluster_node_of(cluster, names[i]), "EXISTS %s", names[i]), 1);
    check_int(redis_int(single, "EXISTS bay den area"), 2);
    expect_ok(hl_lock_release(multi, ERR));
    struct redis_server *busy = cluster_node_of(cluster, "cask");
    redis_do(busy, "HSET cask 0a1b2c3d-0000-4000-8000-1234567890ab:71 1");
    expect_outcome(hl_lock_try_acquire(multi, ERR), HL_EBUSY);
    struct actor *waiter = actor_start_acquire(multi, ACQUIRE(.wait_ms = -1));
    check(redis_wait_int(busy, 1, 5000, "ZCARD hirelock_queue:{cask}"));
    redis_do(busy, "DEL cask");
    redis_do(busy, "%s redisson_lock__channel:{cask} 0",
             redis_program_is_7() ? "SPUBLISH" : "PUBLISH");
    expect_ok(actor_end(waiter));
    expect_ok(actor_release(waiter, multi, NULL));
    check(redis_wait_int(single, 0, 5000, "DBSIZE"));
    close_client(clients[2]);
    redis_server_stop(single);
}
