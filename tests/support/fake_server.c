/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One poll loop under one mutex; the handler runs without it, so it may ask the server things. */
#include "fake_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "byte_queue.h"
#include "deadline.h"
#include "fake_manners.h"
#include "fatal.h"
#include "listener.h"

struct fake_connection {
    struct fake_connection *next;
    int fd, number, channels;
    enum fake_then state; /* what it does when its queue is empty */
    char *input;
    size_t input_length, input_size;
    struct byte_queue output;
};

struct fake_called {
    struct fake_called *next;
    char words[128]; /* the first two arguments */
    int count;
};

struct fake_server {
    int listen_fd, wake_fd, port;
    char url[64];
    fake_handler *handler;
    void *arg;
    pthread_t thread;

    pthread_mutex_t mutex; /* guards all below */
    bool stopping;
    int accepted;
    struct fake_connection *connections; /* only the thread adds and removes */
    struct fake_called *called;
    const struct fake_step *step;
    size_t steps_left;
};

static void fake_server_note(struct fake_server *server, const struct resp_command *command)
{
    char words[128];
    struct fake_called *called = server->called;
    int second = command->argc > 1 ? (int)command->length[1] : 0;
    snprintf(words, sizeof words, "%.*s %.*s", (int)command->length[0], command->argv[0],
             second < 64 ? second : 64, second ? command->argv[1] : "");
    while (called && strcmp(called->words, words) != 0)
        called = called->next;
    if (!called) {
        called = calloc(1, sizeof *called);
        must(called);
        memcpy(called->words, words, sizeof words);
        called->next = server->called;
        server->called = called;
    }
    called->count++;
}

/* The step at hand, if this is its cue. */
static const struct fake_step *fake_server_take_step(struct fake_server *server,
                                                     const struct resp_command *command)
{
    if (server->steps_left == 0)
        return NULL;
    bool arrival = server->step->expect[0] == '\0';
    if (command ? arrival || !resp_command_begins(command, server->step->expect) : !arrival)
        return NULL;
    server->steps_left--;
    return server->step++;
}

static void fake_server_usual(struct fake_server *server, struct fake_connection *connection,
                              const struct resp_command *command, struct fake_reply *reply)
{
    bool answered = false;
    if (server->handler) {
        pthread_mutex_unlock(&server->mutex);
        answered = server->handler(command, reply, server->arg);
        pthread_mutex_lock(&server->mutex);
    }
    if (!answered)
        fake_manners_answer(command, reply, connection->number, &connection->channels);
}

static void fake_connection_answer(struct fake_connection *connection, struct fake_reply *reply)
{
    int64_t due_ns = reply->delay_ms > 0 ? now_ns() + reply->delay_ms * 1000000 : 0;
    byte_queue_push(&connection->output, reply->bytes, reply->length, due_ns);
    connection->state = reply->then;
    fake_reply_deinit(reply);
}

/* command: NULL when the connection has just arrived. */
static void fake_server_answer(struct fake_server *server, struct fake_connection *connection,
                               const struct resp_command *command)
{
    struct fake_reply reply = {.bytes = NULL};
    const struct fake_step *step = fake_server_take_step(server, command);
    if (step && step->answer)
        fake_reply_bytes(&reply, step->answer, step->length ? step->length : strlen(step->answer));
    else if (command)
        fake_server_usual(server, connection, command, &reply);
    if (step) {
        reply.then = step->then;
        reply.delay_ms = step->delay_ms;
    }
    fake_connection_answer(connection, &reply);
}

static void fake_server_accept(struct fake_server *server)
{
    int on = 1;
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct fake_connection *connection = calloc(1, sizeof *connection);
    must(connection);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->fd = fd;
    connection->number = ++server->accepted;
    connection->next = server->connections;
    server->connections = connection;
    fake_server_answer(server, connection, NULL);
}

static void fake_connection_free(struct fake_connection *connection)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (connection->state == FAKE_RESET)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(connection->fd);
    byte_queue_clear(&connection->output);
    free(connection->input);
    free(connection);
}

/* Reads what is there; false when the client has gone. */
static bool fake_connection_read(struct fake_connection *connection)
{
    if (connection->input_size - connection->input_length < 4096) {
        connection->input_size = connection->input_size * 2 + 16384;
        connection->input = realloc(connection->input, connection->input_size);
        must(connection->input);
    }
    ssize_t got = recv(connection->fd, connection->input + connection->input_length,
                       connection->input_size - connection->input_length, MSG_DONTWAIT);
    if (got > 0)
        connection->input_length += (size_t)got;
    return got > 0 || (got < 0 && errno == EAGAIN);
}

/* A replica of another test's, whose master had this port before. */
static bool fake_server_has_stranger(const struct fake_connection *connection)
{
    return connection->input_length >= 4 && memcmp(connection->input, "SYNC", 4) == 0;
}

static void fake_server_obey(struct fake_server *server, struct fake_connection *connection)
{
    struct resp_command command;
    while (connection->state == FAKE_GO_ON) {
        ssize_t used = resp_command_parse(&command, connection->input, connection->input_length);
        if (used < 0 && fake_server_has_stranger(connection)) {
            connection->state = FAKE_CLOSE;
            return;
        }
        if (used < 0)
            fatal("fake server: no command: %.*s", (int)connection->input_length,
                  connection->input);
        if (used == 0)
            return;
        fake_server_note(server, &command);
        fake_server_answer(server, connection, &command);
        connection->input_length -= (size_t)used;
        memmove(connection->input, connection->input + used, connection->input_length);
    }
}

/* False when the connection is at its end. */
static bool fake_server_serve(struct fake_server *server, struct fake_connection *connection)
{
    bool there = true;
    if (connection->state == FAKE_GO_ON) {
        there = fake_connection_read(connection);
        fake_server_obey(server, connection);
    }
    if (byte_queue_write(&connection->output, connection->fd, SIZE_MAX, now_ns()) < 0)
        return false;
    if (connection->output.first || connection->state == FAKE_STALL)
        return there;
    return there && connection->state == FAKE_GO_ON;
}

static void fake_server_turn(struct fake_server *server)
{
    fake_server_accept(server);
    struct fake_connection **at = &server->connections;
    while (*at) {
        struct fake_connection *connection = *at;
        if (fake_server_serve(server, connection)) {
            at = &connection->next;
            continue;
        }
        *at = connection->next;
        fake_connection_free(connection);
    }
}

static int fake_server_gather(struct fake_server *server, struct pollfd **polls, nfds_t *ret_count)
{
    nfds_t count = 2;
    int64_t due_ns = INT64_MAX, now = now_ns();
    *polls = realloc(*polls, sizeof **polls * (2 + (size_t)server->accepted));
    must(*polls);
    (*polls)[0] = (struct pollfd){.fd = server->wake_fd, .events = POLLIN};
    (*polls)[1] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
    for (struct fake_connection *c = server->connections; c; c = c->next) {
        int64_t due = byte_queue_due_ns(&c->output);
        short events = c->state == FAKE_GO_ON ? POLLIN : 0;
        if (due <= now)
            events |= POLLOUT;
        else if (due < due_ns)
            due_ns = due;
        (*polls)[count++] = (struct pollfd){.fd = events ? c->fd : -1, .events = events};
    }
    *ret_count = count;
    return due_ns == INT64_MAX ? -1 : (int)((due_ns - now) / 1000000 + 1);
}

static void *fake_server_run(void *arg)
{
    struct fake_server *server = arg;
    struct pollfd *polls = NULL;
    nfds_t count = 0;
    uint64_t drained = 0;
    pthread_mutex_lock(&server->mutex);
    while (!server->stopping) {
        int timeout_ms = fake_server_gather(server, &polls, &count);
        pthread_mutex_unlock(&server->mutex);
        poll(polls, count, timeout_ms);
        (void)!read(server->wake_fd, &drained, sizeof drained);
        pthread_mutex_lock(&server->mutex);
        fake_server_turn(server);
    }
    pthread_mutex_unlock(&server->mutex);
    free(polls);
    return NULL;
}

static void fake_server_unlock_and_wake(struct fake_server *server)
{
    uint64_t one = 1;
    must(write(server->wake_fd, &one, sizeof one) == sizeof one);
    pthread_mutex_unlock(&server->mutex);
}

struct fake_server *fake_server_start(fake_handler *handler, void *arg)
{
    struct fake_server *server = calloc(1, sizeof *server);
    must(server);
    server->handler = handler;
    server->arg = arg;
    server->listen_fd = listener_open_tcp(&server->port);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    must(server->wake_fd >= 0);
    snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
    pthread_mutex_init(&server->mutex, NULL);
    must(pthread_create(&server->thread, NULL, fake_server_run, server) == 0);
    return server;
}

void fake_server_stop(struct fake_server *server)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->mutex);
    server->stopping = true;
    fake_server_unlock_and_wake(server);
    pthread_join(server->thread, NULL);
    while (server->connections) {
        struct fake_connection *connection = server->connections;
        server->connections = connection->next;
        fake_connection_free(connection);
    }
    while (server->called) {
        struct fake_called *called = server->called;
        server->called = called->next;
        free(called);
    }
    close(server->listen_fd);
    close(server->wake_fd);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}

const char *fake_server_url(const struct fake_server *server)
{
    return server->url;
}

int fake_server_port(const struct fake_server *server)
{
    return server->port;
}

void fake_server_play(struct fake_server *server, const struct fake_step *steps, size_t count)
{
    pthread_mutex_lock(&server->mutex);
    server->step = steps;
    server->steps_left = count;
    pthread_mutex_unlock(&server->mutex);
}

static size_t fake_server_steps_left(struct fake_server *server)
{
    pthread_mutex_lock(&server->mutex);
    size_t left = server->steps_left;
    pthread_mutex_unlock(&server->mutex);
    return left;
}

bool fake_server_wait_play(struct fake_server *server, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (fake_server_steps_left(server) > 0) {
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
    return true;
}

void fake_server_send(struct fake_server *server, const void *bytes, size_t length)
{
    pthread_mutex_lock(&server->mutex);
    for (struct fake_connection *c = server->connections; c; c = c->next)
        byte_queue_push(&c->output, bytes, length, 0);
    fake_server_unlock_and_wake(server);
}

void fake_server_publish(struct fake_server *server, const char *channel, const char *text)
{
    struct fake_reply message = {.bytes = NULL};
    fake_reply_text(&message, "*3\r\n$7\r\nmessage\r\n");
    fake_reply_bulk(&message, channel, strlen(channel));
    fake_reply_bulk(&message, text, strlen(text));
    pthread_mutex_lock(&server->mutex);
    for (struct fake_connection *c = server->connections; c; c = c->next)
        if (c->channels > 0)
            byte_queue_push(&c->output, message.bytes, message.length, 0);
    fake_server_unlock_and_wake(server);
    fake_reply_deinit(&message);
}

void fake_server_close_all(struct fake_server *server, enum fake_then how)
{
    pthread_mutex_lock(&server->mutex);
    for (struct fake_connection *c = server->connections; c; c = c->next)
        c->state = how;
    fake_server_unlock_and_wake(server);
}

int fake_server_count(struct fake_server *server, const char *words)
{
    int count = 0;
    pthread_mutex_lock(&server->mutex);
    for (struct fake_called *called = server->called; called; called = called->next)
        if (strncasecmp(called->words, words, strlen(words)) == 0)
            count += called->count;
    pthread_mutex_unlock(&server->mutex);
    return count;
}

bool fake_server_wait_count(struct fake_server *server, const char *words, int n, int64_t ms)
{
    struct deadline deadline = deadline_of_wait(ms);
    while (fake_server_count(server, words) < n) {
        if (deadline_is_over(deadline))
            return false;
        deadline_nap();
    }
    return true;
}

int fake_server_accepted(struct fake_server *server)
{
    pthread_mutex_lock(&server->mutex);
    int accepted = server->accepted;
    pthread_mutex_unlock(&server->mutex);
    return accepted;
}
