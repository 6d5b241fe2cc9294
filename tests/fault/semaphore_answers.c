/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Semaphores and latches over a network that loses answers, keeps requests, and is cut: each
 * command is done once.
 */

#include "semaphore_scene.h"

Test(semaphore_answers, an_acquire_whose_answer_is_lost_takes_once)
{
    struct scene scene;
    scene_start(&scene);
    lose_answer(&scene);
    expect_ok(hl_semaphore_acquire(scene.semaphore, 4, ERR));
    expect_reconnects(&scene, 1);
    expect_permits(&scene, PERMITS - 4);
    scene_stop(&scene);
}

Test(semaphore_answers, a_release_whose_answer_is_lost_gives_back_once)
{
    struct scene scene;
    scene_start(&scene);
    lose_answer(&scene);
    expect_ok(hl_semaphore_release(scene.semaphore, 2, ERR));
    expect_permits(&scene, PERMITS + 2);
    lose_answer(&scene);
    expect_ok(hl_semaphore_release_if_exists(scene.semaphore, 1, ERR));
    expect_permits(&scene, PERMITS + 3);
    expect_reconnects(&scene, 2);
    scene_stop(&scene);
}

struct late_release {
    hl_semaphore *semaphore;
    int code;
};

static void *release_late(void *arg)
{
    struct late_release *late = arg;
    late->code = hl_semaphore_release(late->semaphore, 1, NULL);
    return NULL;
}

/* The note of the first copy stands for a minute, less what a copy may take. */
Test(semaphore_answers, a_release_is_not_repeated_when_its_note_may_be_gone)
{
    struct scene scene;
    hl_client_options options = connection_options();
    scene_start(&scene);
    options.request_timeout_ms = 29950; /* a minute less twice that: 100 ms */
    options.outage_timeout_ms = -1;
    hl_client *client = open_client_at(proxy_url(scene.c.proxy), &options);
    hl_semaphore *semaphore = NULL;
    expect_ok(hl_semaphore_new(client, "pool", &semaphore, NULL));
    expect_ok(hl_semaphore_release(semaphore, 1, ERR));
    expect_permits(&scene, PERMITS + 1);
    proxy_refuse(scene.c.proxy, true);
    struct late_release late = {.semaphore = semaphore};
    pthread_t thread;
    lose_answer(&scene);
    check_int(pthread_create(&thread, NULL, release_late, &late), 0);
    wait_permits(&scene, PERMITS + 2); /* it was done, and no waiter was told */
    struct deadline over = deadline_in(300);
    while (!deadline_is_over(over))
        deadline_nap();
    proxy_refuse(scene.c.proxy, false);
    pthread_join(thread, NULL);
    check_int(late.code, HL_EINDOUBT);
    expect_permits(&scene, PERMITS + 2);
    hl_semaphore_free(semaphore);
    close_client(client);
    scene_stop(&scene);
}

Test(semaphore_answers, any_other_call_without_its_answer_is_done_once)
{
    struct scene scene;
    int64_t drained = 0;
    scene_start(&scene);
    lose_answer(&scene);
    expect_ok(hl_semaphore_add_permits(scene.semaphore, -3, ERR));
    expect_permits(&scene, PERMITS - 3);
    lose_answer(&scene);
    expect_ok(hl_semaphore_drain(scene.semaphore, &drained, ERR));
    check_int(drained, PERMITS - 3);
    expect_permits(&scene, 0);
    redis_do(scene.c.server, "DEL pool");
    lose_answer(&scene);
    expect_ok(hl_semaphore_try_set_permits(scene.semaphore, 5, 0, ERR));
    expect_permits(&scene, 5);
    expect_reconnects(&scene, 3);
    scene_stop(&scene);
}

Test(semaphore_answers, a_latch_is_counted_down_once_though_the_answer_is_lost)
{
    struct scene scene;
    scene_start(&scene);
    lose_answer(&scene);
    expect_ok(hl_latch_try_set_count(scene.latch, 3, ERR));
    lose_answer(&scene);
    expect_ok(hl_latch_count_down(scene.latch, ERR));
    check_int(redis_int(scene.c.server, "GET gate"), 2);
    lose_answer(&scene);
    expect_ok(hl_latch_delete(scene.latch, ERR));
    check_int(redis_int(scene.c.server, "EXISTS gate"), 0);
    expect_ok(hl_latch_try_set_count(scene.latch, 1, ERR));
    lose_answer(&scene);
    expect_ok(hl_latch_count_down(scene.latch, ERR));
    lose_answer(&scene);
    expect_ok(hl_latch_await(scene.latch, ERR));
    expect_reconnects(&scene, 5);
    scene_stop(&scene);
}

Test(semaphore_answers, a_request_of_a_dropped_connection_takes_nothing_more_when_it_arrives)
{
    struct scene scene;
    scene_start_without_kill(&scene);
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_UP);
    expect_ok(hl_semaphore_acquire(scene.semaphore, 4, ERR));
    expect_ok(hl_semaphore_release(scene.semaphore, 4, ERR));
    expect_ok(hl_semaphore_acquire(scene.semaphore, 1, ERR));
    expect_permits(&scene, PERMITS - 1);
    deliver(&scene);
    expect_permits(&scene, PERMITS - 1);
    scene_stop(&scene);
}

Test(semaphore_answers, a_release_of_a_dropped_connection_gives_nothing_more_when_it_arrives)
{
    struct scene scene;
    scene_start_without_kill(&scene);
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_UP);
    expect_ok(hl_semaphore_release(scene.semaphore, 4, ERR));
    for (int i = 0; i < 3; i++)
        expect_ok(hl_semaphore_release(scene.semaphore, 1, ERR));
    deliver(&scene);
    expect_permits(&scene, PERMITS + 7);
    scene_stop(&scene);
}

Test(semaphore_answers, a_count_of_a_dropped_connection_counts_nothing_more_when_it_arrives)
{
    struct scene scene;
    scene_start_without_kill(&scene);
    expect_ok(hl_latch_try_set_count(scene.latch, 5, ERR));
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_UP);
    for (int i = 0; i < 3; i++)
        expect_ok(hl_latch_count_down(scene.latch, ERR));
    deliver(&scene);
    check_int(redis_int(scene.c.server, "GET gate"), 2);
    scene_stop(&scene);
}

/* What is kept on disk is there again: permits, a latch, and the notes of what was done. */
Test(semaphore_answers, a_server_that_comes_back_keeps_its_state_and_serves_waiters)
{
    struct scene scene;
    struct posted taken = {0}, open = {0};
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;
    scene.c = connection_start(
        &(struct redis_options){.appendonly = true, .config = "appendfsync always"});
    scene_connect(&scene, slow_ms(20000), patience_ms(5000));
    scene_warm_up(&scene);
    options.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_latch_try_set_count(scene.latch, 1, ERR));
    expect_ok(hl_semaphore_acquire(scene.semaphore, PERMITS, ERR));
    expect_ok(hl_semaphore_acquire_async(scene.semaphore, 2, &options, posted_done, &taken));
    expect_ok(hl_latch_await_async(scene.latch, &options, posted_done, &open));
    wait_stat(scene.client, waiters_now, 2);
    redis_server_restart(scene.c.server);
    expect_permits(&scene, 0);
    expect_ok(hl_semaphore_release(scene.semaphore, 3, ERR));
    posted_wait(&taken, HL_OK);
    expect_permits(&scene, 1);
    expect_ok(hl_latch_count_down(scene.latch, ERR));
    posted_wait(&open, HL_OK);
    scene_stop(&scene);
}

Test(semaphore_answers, without_a_server_every_call_says_so_when_the_outage_timeout_is_over)
{
    struct connection c = connection_start(NULL);
    hl_client_options options = connection_options();
    hl_client *client = NULL;
    hl_semaphore *semaphore = NULL;
    hl_latch *latch = NULL;
    int64_t count;
    options.outage_timeout_ms = slow_ms(100);
    client = open_client_at(proxy_url(c.proxy), &options);
    expect_ok(hl_semaphore_new(client, "pool", &semaphore, ERR));
    expect_ok(hl_latch_new(client, "gate", &latch, ERR));
    proxy_refuse(c.proxy, true);
    proxy_kill_all(c.proxy);
    expect_outcome(hl_semaphore_acquire(semaphore, 1, ERR), HL_ECONN);
    expect_outcome(hl_semaphore_release(semaphore, 1, ERR), HL_ECONN);
    expect_outcome(hl_semaphore_try_set_permits(semaphore, 1, 0, ERR), HL_ECONN);
    expect_outcome(hl_semaphore_add_permits(semaphore, 1, ERR), HL_ECONN);
    expect_outcome(hl_semaphore_drain(semaphore, &count, ERR), HL_ECONN);
    expect_outcome(hl_semaphore_available(semaphore, &count, ERR), HL_ECONN);
    expect_outcome(hl_latch_try_set_count(latch, 1, ERR), HL_ECONN);
    expect_outcome(hl_latch_count_down(latch, ERR), HL_ECONN);
    expect_outcome(hl_latch_count(latch, &count, ERR), HL_ECONN);
    expect_outcome(hl_latch_await(latch, ERR), HL_ECONN);
    expect_outcome(hl_latch_delete(latch, ERR), HL_ECONN);
    hl_semaphore_free(semaphore);
    hl_latch_free(latch);
    close_client(client);
    connection_stop(&c);
}

/* It was sent, and may be done or not. */
Test(semaphore_answers, a_deed_without_any_answer_ends_as_unknown)
{
    struct scene scene;
    struct posted posted = {0};
    int64_t count;
    scene.c = connection_start(NULL);
    scene_connect(&scene, slow_ms(2000), slow_ms(1000));
    scene_warm_up(&scene);
    redis_server_freeze(scene.c.server);
    expect_ok(hl_latch_count_down_async(scene.latch, posted_done, &posted));
    expect_outcome(hl_semaphore_release(scene.semaphore, 1, ERR), HL_EINDOUBT);
    posted_wait(&posted, HL_EINDOUBT);
    expect_outcome(hl_semaphore_available(scene.semaphore, &count, ERR), HL_ECONN);
    redis_server_thaw(scene.c.server);
    scene_stop(&scene);
}

/* Cut after each byte of what a few calls say and hear, one after the other. */
Test(semaphore_answers, a_connection_cut_anywhere_changes_no_sum)
{
    struct scene scene;
    scene_start(&scene);
    for (uint64_t bytes = 1; bytes < 1600; bytes += 37) {
        int64_t count = 0;
        proxy_cut_once(scene.c.proxy, PROXY_EVERY, bytes % 2 ? PROXY_UP : PROXY_DOWN,
                       bytes % 2 ? bytes : 1 + bytes / 20, PROXY_RST);
        expect_ok(hl_semaphore_acquire(scene.semaphore, 2, ERR));
        expect_ok(hl_semaphore_release(scene.semaphore, 2, ERR));
        expect_ok(hl_semaphore_available(scene.semaphore, &count, ERR));
        check_int(count, PERMITS);
        expect_ok(hl_latch_try_set_count(scene.latch, 1, ERR));
        expect_ok(hl_latch_count_down(scene.latch, ERR));
        expect_ok(hl_latch_await(scene.latch, ERR));
        check_int(redis_int(scene.c.server, "EXISTS gate"), 0);
    }
    scene_stop(&scene);
}
