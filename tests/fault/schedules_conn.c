/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * One connection without a link: nothing goes out before its handshake is over, and nothing behind
 * half a command.
 */
#include "redis/conn.h"

#include <semaphore.h>
#include <sys/socket.h>

#include "support/failing_malloc.h"
#include "support/test.h"

enum { REQUEST_MS = 60000 };

struct scene {
    struct hli_loop *loop;
    struct hli_conn conn;
    int peer;
    struct hli_task task, block;
    sem_t ran, entered, may_go;
};

static void nothing_closed(struct hli_conn *conn, const hl_error *err)
{
    (void)conn, (void)err;
}

static const struct hli_conn_events events = {.closed = nothing_closed};

static void on_bell(void *arg)
{
    (void)arg;
}

static void sem_take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static void scene_do(struct scene *scene, void (*run)(void *arg))
{
    scene->task = (struct hli_task){.run = run, .arg = scene};
    hli_loop_post(scene->loop, &scene->task);
    sem_take(&scene->ran);
}

static void task_open(void *arg)
{
    struct scene *scene = arg;
    int pair[2], small = 1;
    check_int(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    check_int(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    scene->peer = pair[1];
    check_int(hli_conn_open(&scene->conn, pair[0], NULL), 0);
    sem_post(&scene->ran);
}

static void task_close(void *arg)
{
    struct scene *scene = arg;
    hl_error err = {.code = HL_ECONN, .text = "the test is over"};
    hli_conn_close(&scene->conn, &err);
    sem_post(&scene->ran);
}

static void scene_begin(struct scene *scene)
{
    check_int(hli_loop_start(&scene->loop, on_bell, NULL), 0);
    hli_conn_init(&scene->conn, scene->loop, &events, scene);
    scene->conn.request_timeout_ms = REQUEST_MS;
    sem_init(&scene->ran, 0, 0);
    sem_init(&scene->entered, 0, 0);
    sem_init(&scene->may_go, 0, 0);
    scene_do(scene, task_open);
}

static void scene_end(struct scene *scene)
{
    scene_do(scene, task_close);
    hli_loop_stop(scene->loop);
    hli_conn_deinit(&scene->conn);
    hli_loop_free(scene->loop);
    close(scene->peer);
}

static void task_block(void *arg)
{
    struct scene *scene = arg;
    sem_post(&scene->entered);
    sem_take(&scene->may_go);
}

static size_t scene_drain(struct scene *scene)
{
    char bytes[65536];
    size_t all = 0;
    ssize_t got;
    while ((got = recv(scene->peer, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        all += (size_t)got;
    return all;
}

static atomic_int unknown_ends;

static void ended(struct hli_op *op, const struct hli_answer *answer)
{
    (void)op;
    unknown_ends += answer->verdict == HLI_UNKNOWN;
}

static void op_echo(struct hli_op *op, size_t length)
{
    char *text = malloc(length + 1);
    check(text != NULL);
    memset(text, 'x', length);
    text[length] = '\0';
    const struct hli_bytes words[] = {hli_bytes_of("ECHO"), {text, length}};
    op->done = ended;
    check_int(hli_op_command(op, words, 2), 0);
    free(text);
}

Test(schedules_conn, is_not_used_by_others_before_it_is_ready)
{
    struct scene scene = {.peer = -1};
    struct hli_op op = {.bytes = NULL}, handshake = {.bytes = NULL};
    scene_begin(&scene);
    op_echo(&op, 10);
    op_echo(&handshake, 10);
    check(!hli_conn_send(&scene.conn, &op, HLI_CONN_IF_READY));
    check_int(scene_drain(&scene), 0);
    check(hli_conn_send(&scene.conn, &handshake, HLI_CONN_AT_ONCE)); /* the link itself may */
    check_int(scene_drain(&scene), handshake.length);
    hli_conn_set_ready(&scene.conn);
    check(hli_conn_send(&scene.conn, &op, HLI_CONN_IF_READY));
    check_int(scene_drain(&scene), op.length);
    scene_do(&scene, task_close);
    check(!hli_conn_send(&scene.conn, &op, HLI_CONN_IF_READY));
    close(scene.peer);
    scene_do(&scene, task_open); /* a new connection is as little ready as the first */
    check(!hli_conn_send(&scene.conn, &op, HLI_CONN_IF_READY));
    check_int(scene_drain(&scene), 0);
    scene_end(&scene);
    check_int(unknown_ends, 2);
    hli_op_deinit(&op);
    hli_op_deinit(&handshake);
}

/* A command cannot be put into the outbox for want of memory: what follows must not take its place,
 * or the answers would belong to the wrong requests. */
Test(schedules_conn, sends_nothing_behind_a_command_that_found_no_memory)
{
    struct scene scene = {.peer = -1};
    struct hli_op big = {.bytes = NULL}, small = {.bytes = NULL};
    if (!failing_malloc_available())
        skip("a sanitizer brings its own allocator");
    scene_begin(&scene);
    op_echo(&big, 1 << 20);
    op_echo(&small, 10);
    scene.block = (struct hli_task){.run = task_block, .arg = &scene};
    hli_loop_post(scene.loop, &scene.block); /* the loop does not close it meanwhile */
    sem_take(&scene.entered);
    failing_malloc_arm(FAILING_THREAD, 0);
    check(hli_conn_send(&scene.conn, &big, HLI_CONN_AT_ONCE));
    check(failing_malloc_disarm());
    check(scene_drain(&scene) < big.length);
    check(hli_conn_send(&scene.conn, &small, HLI_CONN_AT_ONCE));
    check_int(scene_drain(&scene), 0);
    sem_post(&scene.may_go);
    scene_end(&scene);
    check_int(unknown_ends, 2);
    hli_op_deinit(&big);
    hli_op_deinit(&small);
}
