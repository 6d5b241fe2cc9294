/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * One poll loop under one mutex. A control changes what the loop looks at, wakes it, and waits for
 * the end of a turn that saw the change.
 */
#include "proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "fatal.h"
#include "listener.h"
#include "proxy_pipe.h"
#include "redis_server.h"

enum { PROXY_SPECIALS = 64 };

struct proxy {
    int wake_fd, server_port, port;
    char server_path[108], listen_path[108], url[128];
    pthread_t thread;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t turned;
    uint64_t wanted, seen; /* controls asked for; of them, seen by a whole turn */
    bool stopping, refusing;
    int listen_fd;  /* -1 while refusing */
    int reserve_fd; /* of the port, so that no other test takes it meanwhile; or -1 */
    int accepted;
    struct proxy_pipe *pipes; /* newest first, closed ones included for their counters */
    struct proxy_faults faults;
    struct proxy_plan everyone;
    struct proxy_plan specials[PROXY_SPECIALS];
    int special_number[PROXY_SPECIALS];
    int special_count;
};

static struct proxy_plan *proxy_plan_of(struct proxy *proxy, int number)
{
    for (int i = 0; i < proxy->special_count; i++)
        if (proxy->special_number[i] == number)
            return &proxy->specials[i];
    return &proxy->everyone;
}

/* The plan of one connection, made its own when it was everyone's. */
static struct proxy_plan *proxy_plan_special(struct proxy *proxy, int number)
{
    struct proxy_plan *plan = proxy_plan_of(proxy, number);
    if (plan != &proxy->everyone)
        return plan;
    must(proxy->special_count < PROXY_SPECIALS);
    proxy->special_number[proxy->special_count] = number;
    proxy->specials[proxy->special_count] = proxy->everyone;
    return &proxy->specials[proxy->special_count++];
}

static void proxy_listen(struct proxy *proxy)
{
    if (proxy->refusing == (proxy->listen_fd < 0))
        return;
    if (proxy->refusing) {
        close(proxy->listen_fd);
        proxy->listen_fd = -1;
    } else if (proxy->port) {
        proxy->listen_fd = listener_open_tcp_at(proxy->port);
        must(proxy->listen_fd >= 0);
    } else {
        proxy->listen_fd = listener_open_unix(proxy->listen_path);
    }
}

static void proxy_accept(struct proxy *proxy)
{
    int client = proxy->listen_fd < 0 ? -1 : accept4(proxy->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* refused by unix sockets */
    int server = proxy->server_port ? listener_connect_tcp(proxy->server_port)
                                    : listener_connect_unix(proxy->server_path);
    struct proxy_pipe *pipe = proxy_pipe_new(proxy->accepted++, client, server);
    pipe->next = proxy->pipes;
    proxy->pipes = pipe;
    if (server < 0)
        proxy_pipe_close(pipe, PROXY_RST);
}

/* How long to sleep, and the polls: the wake-up, the listener, then two per open pipe. */
static int proxy_gather(struct proxy *proxy, struct pollfd **polls, nfds_t *ret_count)
{
    nfds_t count = 2;
    int64_t due_ns = INT64_MAX;
    *polls = realloc(*polls, sizeof **polls * (2 + 2 * (size_t)proxy->accepted));
    must(*polls);
    (*polls)[0] = (struct pollfd){.fd = proxy->wake_fd, .events = POLLIN};
    (*polls)[1] = (struct pollfd){.fd = proxy->listen_fd, .events = POLLIN};
    for (struct proxy_pipe *pipe = proxy->pipes; pipe; pipe = pipe->next) {
        if (pipe->closed)
            continue;
        proxy_pipe_interest(pipe, proxy_plan_of(proxy, pipe->number), *polls + count, &due_ns);
        count += 2;
    }
    *ret_count = count;
    if (due_ns == INT64_MAX)
        return -1;
    int64_t left_ms = (due_ns - now_ns()) / 1000000 + 1;
    return left_ms < 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms;
}

static void proxy_turn(struct proxy *proxy)
{
    uint64_t wanted = proxy->wanted;
    proxy_listen(proxy);
    proxy_accept(proxy);
    for (struct proxy_pipe *pipe = proxy->pipes; pipe; pipe = pipe->next)
        if (!pipe->closed)
            proxy_pipe_serve(pipe, proxy_plan_of(proxy, pipe->number), &proxy->faults);
    proxy->seen = wanted;
    pthread_cond_broadcast(&proxy->turned);
}

static void *proxy_run(void *arg)
{
    struct proxy *proxy = arg;
    struct pollfd *polls = NULL;
    nfds_t count = 0;
    uint64_t drained = 0;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stopping) {
        int timeout_ms = proxy_gather(proxy, &polls, &count);
        pthread_mutex_unlock(&proxy->mutex);
        poll(polls, count, timeout_ms);
        (void)!read(proxy->wake_fd, &drained, sizeof drained);
        pthread_mutex_lock(&proxy->mutex);
        proxy_turn(proxy);
    }
    pthread_mutex_unlock(&proxy->mutex);
    free(polls);
    return NULL;
}

static void proxy_wake(struct proxy *proxy)
{
    uint64_t one = 1;
    must(write(proxy->wake_fd, &one, sizeof one) == sizeof one);
}

/* Every control is made between these two. */
static void proxy_begin(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
}

static void proxy_end(struct proxy *proxy)
{
    uint64_t mine = ++proxy->wanted;
    proxy_wake(proxy);
    while (proxy->seen < mine)
        pthread_cond_wait(&proxy->turned, &proxy->mutex);
    pthread_mutex_unlock(&proxy->mutex);
}

struct proxy *proxy_start(const struct proxy_options *options)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    must(proxy);
    proxy->server_port = options->server_port;
    proxy->reserve_fd = -1;
    if (options->server_path)
        snprintf(proxy->server_path, sizeof proxy->server_path, "%s", options->server_path);
    if (options->listen_path) {
        snprintf(proxy->listen_path, sizeof proxy->listen_path, "%s", options->listen_path);
        snprintf(proxy->url, sizeof proxy->url, "unix://%s", options->listen_path);
        proxy->listen_fd = listener_open_unix(options->listen_path);
    } else {
        proxy->listen_fd = listener_open_tcp(&proxy->port);
        proxy->reserve_fd = listener_reserve(proxy->port);
        snprintf(proxy->url, sizeof proxy->url, "%s://127.0.0.1:%d",
                 options->tls ? "rediss" : "redis", proxy->port);
    }
    proxy->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    must(proxy->wake_fd >= 0);
    pthread_mutex_init(&proxy->mutex, NULL);
    pthread_cond_init(&proxy->turned, NULL);
    must(pthread_create(&proxy->thread, NULL, proxy_run, proxy) == 0);
    return proxy;
}

struct proxy *proxy_start_before(struct redis_server *server)
{
    return proxy_start(&(struct proxy_options){.server_port = redis_server_port(server),
                                               .server_path = redis_server_socket(server),
                                               .tls = redis_server_has_tls(server)});
}

void proxy_stop(struct proxy *proxy)
{
    if (!proxy)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->stopping = true;
    proxy_wake(proxy);
    pthread_mutex_unlock(&proxy->mutex);
    pthread_join(proxy->thread, NULL);
    while (proxy->pipes) {
        struct proxy_pipe *pipe = proxy->pipes;
        proxy->pipes = pipe->next;
        proxy_pipe_free(pipe);
    }
    if (proxy->reserve_fd >= 0)
        close(proxy->reserve_fd);
    if (proxy->listen_fd >= 0)
        close(proxy->listen_fd);
    if (!proxy->port)
        unlink(proxy->listen_path);
    close(proxy->wake_fd);
    pthread_cond_destroy(&proxy->turned);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

const char *proxy_url(const struct proxy *proxy)
{
    return proxy->url;
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_pass(struct proxy *proxy)
{
    proxy_begin(proxy);
    proxy->everyone = (struct proxy_plan){.held = {false, false}};
    proxy->special_count = 0;
    proxy->faults.cut_armed = false;
    proxy->faults.drops_left = 0;
    proxy->faults.answer_words[0] = '\0';
    proxy->refusing = false;
    proxy_end(proxy);
}

/* The i-th plan that a control for `which` changes, NULL behind the last: one's own, or everyone's
 * and all those that were made from it. */
static struct proxy_plan *proxy_plan_at(struct proxy *proxy, int which, int i)
{
    if (which != PROXY_EVERY)
        return i == 0 ? proxy_plan_special(proxy, which) : NULL;
    if (i == 0)
        return &proxy->everyone;
    return i <= proxy->special_count ? &proxy->specials[i - 1] : NULL;
}

static void proxy_set_held(struct proxy *proxy, int which, enum proxy_direction direction,
                           bool held)
{
    struct proxy_plan *plan = NULL;
    proxy_begin(proxy);
    for (int i = 0; (plan = proxy_plan_at(proxy, which, i)); i++)
        plan->held[direction] = held;
    proxy_end(proxy);
}

void proxy_hold(struct proxy *proxy, int which, enum proxy_direction direction)
{
    proxy_set_held(proxy, which, direction, true);
}

void proxy_release(struct proxy *proxy, int which, enum proxy_direction direction)
{
    proxy_set_held(proxy, which, direction, false);
}

void proxy_delay(struct proxy *proxy, int which, enum proxy_direction direction, int64_t ms)
{
    struct proxy_plan *plan = NULL;
    proxy_begin(proxy);
    for (int i = 0; (plan = proxy_plan_at(proxy, which, i)); i++)
        plan->delay_ms[direction] = ms;
    proxy_end(proxy);
}

void proxy_cut_after(struct proxy *proxy, int which, enum proxy_direction direction, uint64_t bytes,
                     enum proxy_cut how)
{
    struct proxy_plan *plan = NULL;
    proxy_begin(proxy);
    for (int i = 0; (plan = proxy_plan_at(proxy, which, i)); i++) {
        plan->cuts[direction] = true;
        plan->cut_at[direction] = bytes;
        plan->cut_how[direction] = how;
    }
    proxy_end(proxy);
}

void proxy_cut_once(struct proxy *proxy, int which, enum proxy_direction direction, uint64_t bytes,
                    enum proxy_cut how)
{
    proxy_begin(proxy);
    proxy->faults.cut_which = which;
    proxy->faults.cut_armed = true;
    proxy->faults.cut_direction = direction;
    proxy->faults.cut_left = bytes;
    proxy->faults.cut_how = how;
    proxy_end(proxy);
}

void proxy_drop_messages(struct proxy *proxy, const char *part, int count)
{
    proxy_begin(proxy);
    snprintf(proxy->faults.drop_part, sizeof proxy->faults.drop_part, "%s", part);
    proxy->faults.drops_left = count;
    proxy_end(proxy);
}

static int proxy_read_int(struct proxy *proxy, const int *value)
{
    pthread_mutex_lock(&proxy->mutex);
    int result = *value;
    pthread_mutex_unlock(&proxy->mutex);
    return result;
}

void proxy_answer(struct proxy *proxy, const char *words, const char *error)
{
    struct proxy_faults *faults = &proxy->faults;
    proxy_begin(proxy);
    snprintf(faults->answer_words, sizeof faults->answer_words, "%s", words ? words : "");
    snprintf(faults->answer_error, sizeof faults->answer_error, "%s", error ? error : "");
    proxy_end(proxy);
}

int proxy_answered(struct proxy *proxy)
{
    return proxy_read_int(proxy, &proxy->faults.answered);
}

/* A path that does not fit would be another server's: both are copied whole, or not at all. */
void proxy_lead_to(struct proxy *proxy, struct redis_server *server)
{
    const char *path = redis_server_socket(server);

    must(!path || strlen(path) < sizeof proxy->server_path);
    proxy_begin(proxy);
    proxy->server_port = redis_server_port(server);
    snprintf(proxy->server_path, sizeof proxy->server_path, "%s", path ? path : "");
    proxy_end(proxy);
}

void proxy_refuse(struct proxy *proxy, bool refuse)
{
    proxy_begin(proxy);
    proxy->refusing = refuse;
    proxy_end(proxy);
}

void proxy_kill(struct proxy *proxy, int which)
{
    proxy_begin(proxy);
    for (struct proxy_pipe *pipe = proxy->pipes; pipe; pipe = pipe->next)
        if (which == PROXY_EVERY || pipe->number == which)
            pipe->doomed = true;
    proxy_end(proxy);
}

void proxy_kill_all(struct proxy *proxy)
{
    proxy_kill(proxy, PROXY_EVERY);
}

int proxy_cuts(struct proxy *proxy)
{
    return proxy_read_int(proxy, &proxy->faults.cuts);
}

int proxy_dropped(struct proxy *proxy)
{
    return proxy_read_int(proxy, &proxy->faults.dropped);
}

int proxy_accepted(struct proxy *proxy)
{
    return proxy_read_int(proxy, &proxy->accepted);
}

int proxy_open(struct proxy *proxy)
{
    int count = 0;
    pthread_mutex_lock(&proxy->mutex);
    for (struct proxy_pipe *pipe = proxy->pipes; pipe; pipe = pipe->next)
        count += !pipe->closed && !pipe->way[PROXY_UP].ended;
    pthread_mutex_unlock(&proxy->mutex);
    return count;
}

static uint64_t proxy_sum(struct proxy *proxy, int which, enum proxy_direction direction, bool kept)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&proxy->mutex);
    for (struct proxy_pipe *pipe = proxy->pipes; pipe; pipe = pipe->next)
        if (which == PROXY_EVERY || pipe->number == which)
            sum += kept ? pipe->way[direction].queue.waiting : pipe->way[direction].forwarded;
    pthread_mutex_unlock(&proxy->mutex);
    return sum;
}

uint64_t proxy_bytes(struct proxy *proxy, int which, enum proxy_direction direction)
{
    return proxy_sum(proxy, which, direction, false);
}

uint64_t proxy_kept(struct proxy *proxy, int which, enum proxy_direction direction)
{
    return proxy_sum(proxy, which, direction, true);
}

int proxy_find(struct proxy *proxy, const char *text)
{
    int number = -1;
    pthread_mutex_lock(&proxy->mutex);
    for (struct proxy_pipe *pipe = proxy->pipes; pipe && number < 0; pipe = pipe->next)
        if (!pipe->closed && memmem(pipe->opening, pipe->opening_length, text, strlen(text)))
            number = pipe->number;
    pthread_mutex_unlock(&proxy->mutex);
    return number;
}
