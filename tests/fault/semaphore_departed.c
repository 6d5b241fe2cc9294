/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Semaphores over a network that holds answers back, or loses them: permits that come when no
 * caller waits for them any more are given back, or serve another one.
 */

#include "integration/settled.h"
#include "semaphore_scene.h"

/* The server has given permits, and the caller has gone before it learns of them. */
Test(semaphore_departed, permits_that_come_after_the_wait_return)
{
    struct scene scene;
    scene_start_patient(&scene);
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN);
    check(hl_semaphore_acquire_for(scene.semaphore, 4, 50, NULL) < 0);
    wait_permits(&scene, PERMITS - 4);
    proxy_release(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN);
    wait_permits(&scene, PERMITS);
    expect_ok(hl_semaphore_acquire(scene.semaphore, PERMITS, ERR));
    scene_stop(&scene);
}

/* The same, and its connection is lost too: the undo goes by the next one. */
Test(semaphore_departed, permits_of_a_lost_connection_return)
{
    struct scene scene;
    scene_start(&scene);
    proxy_refuse(scene.c.proxy, true);
    lose_answer(&scene);
    check(hl_semaphore_acquire_for(scene.semaphore, 4, 50, NULL) < 0);
    wait_permits(&scene, PERMITS - 4);
    proxy_refuse(scene.c.proxy, false);
    wait_permits(&scene, PERMITS);
    scene_stop(&scene);
}

/* One request was for two waiters; one of them has left when it is answered. */
Test(semaphore_departed, permits_of_a_departed_waiter_return)
{
    struct scene scene;
    struct posted first = {0}, second = {0};
    hl_cancel *cancel = NULL;
    expect_ok(hl_cancel_new(&cancel));
    scene_start_patient(&scene);
    expect_ok(hl_semaphore_acquire(scene.semaphore, PERMITS, ERR));
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;
    options.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_semaphore_acquire_async(scene.semaphore, 3, &options, posted_done, &first));
    options.cancel = cancel;
    expect_ok(hl_semaphore_acquire_async(scene.semaphore, 4, &options, posted_done, &second));
    expect_settled_wait(scene.semaphore);
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN);
    redis_do(scene.c.server, "SET pool %d", PERMITS);
    redis_do(scene.c.server, "PUBLISH redisson_sc:{pool} 9");
    wait_permits(&scene, PERMITS - 7);
    hl_cancel_fire(cancel);
    posted_wait(&second, HL_ECANCELED);
    proxy_release(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN);
    posted_wait(&first, HL_OK);
    wait_permits(&scene, PERMITS - 3);
    expect_ok(hl_semaphore_acquire(scene.semaphore, PERMITS - 3, ERR));
    hl_cancel_free(cancel);
    scene_stop(&scene);
}

/* Permits for a departed waiter that suffice for another one: the client keeps them. */
Test(semaphore_departed, permits_of_a_departed_waiter_serve_the_next)
{
    struct scene scene;
    struct posted first = {0}, second = {0};
    hl_cancel *cancel = NULL;
    expect_ok(hl_cancel_new(&cancel));
    scene_start_patient(&scene);
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;
    options.wait_ms = HL_WAIT_FOREVER;
    options.cancel = cancel;
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN);
    expect_ok(hl_semaphore_acquire_async(scene.semaphore, PERMITS, &options, posted_done, &first));
    wait_permits(&scene, 0);
    options.cancel = NULL;
    expect_ok(hl_semaphore_acquire_async(scene.semaphore, 2, &options, posted_done, &second));
    hl_cancel_fire(cancel);
    posted_wait(&first, HL_ECANCELED);
    proxy_release(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN);
    posted_wait(&second, HL_OK);
    wait_permits(&scene, PERMITS - 2);
    hl_cancel_free(cancel);
    scene_stop(&scene);
}

Test(semaphore_departed, permits_of_a_closed_client_return)
{
    struct scene scene;
    struct posted posted = {0};
    scene_start_patient(&scene);
    proxy_delay(scene.c.proxy, connection_of_commands(&scene.c), PROXY_DOWN, slow_ms(500));
    hl_wait_options options = HL_WAIT_OPTIONS_INIT;
    options.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_semaphore_acquire_async(scene.semaphore, 4, &options, posted_done, &posted));
    wait_permits(&scene, PERMITS - 4);
    hl_semaphore_free(scene.semaphore);
    hl_latch_free(scene.latch);
    close_client(scene.client);
    posted_wait(&posted, HL_ECANCELED);
    expect_permits(&scene, PERMITS);
    connection_stop(&scene.c);
}

Test(semaphore_departed, a_request_of_a_wait_that_is_over_takes_nothing_when_it_arrives)
{
    struct scene scene;
    scene_start_without_kill(&scene);
    proxy_hold(scene.c.proxy, connection_of_commands(&scene.c), PROXY_UP);
    check(hl_semaphore_acquire_for(scene.semaphore, 4, slow_ms(20), NULL) < 0);
    expect_reconnects(&scene, 1);
    expect_ok(hl_semaphore_acquire(scene.semaphore, 1, ERR));
    expect_ok(hl_semaphore_release(scene.semaphore, 1, ERR));
    deliver(&scene);
    expect_permits(&scene, PERMITS);
    scene_stop(&scene);
}
