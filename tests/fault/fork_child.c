/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* fork() beside a client at work: what the child may do with its parent's handles, and that the
 * parent does not notice. */
#include "process_kit.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/census.h"
#include "support/kinds.h"
#include "support/redis_probe.h"

enum { WORKERS = 3, HOLDS = 20, FORKS = 100 };

static struct events events;

/* What the parent has, and the child inherits. */
static hl_client *client;
static hl_lock *busy, *held, *held_by_all[HOLDS];
static hl_owner *owner;
static hl_cancel *cancel;
static atomic_bool is_over;

static void start(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
}

static void stop(void)
{
    redis_server_stop(server);
}

static void parent_open(int64_t watchdog_ms, unsigned flags)
{
    hl_client_options options = kit_options(watchdog_ms, &events);
    options.flags = flags;
    client = open_client(&options);
    busy = new_lock(client, "busy");
    held = new_lock(client, "held");
    expect_ok(hl_owner_new(client, &owner));
    expect_ok(hl_cancel_new(&cancel));
}

static void parent_close(void)
{
    free_lock(busy);
    free_lock(held);
    free_owner(owner);
    hl_cancel_free(cancel);
    close_client(client);
}

static void never(int code, const hl_error *err, void *arg)
{
    (void)code, (void)err, (void)arg;
    check_msg(false, "a completion in the child");
}

static void never_inspected(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    (void)info;
    never(code, err, arg);
}

static void child_uses_lock(hl_lock *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    expect_outcome(hl_lock_acquire(lock, ERR), HL_EFORKED);
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EFORKED);
    expect_outcome(hl_lock_acquire_for(lock, 100, ERR), HL_EFORKED);
    options.owner = owner;
    options.cancel = cancel;
    expect_outcome(hl_lock_acquire_with(lock, &options, ERR), HL_EFORKED);
    expect_outcome(hl_lock_release(lock, ERR), HL_EFORKED);
    expect_outcome(hl_lock_release_as(lock, owner, ERR), HL_EFORKED);
    expect_outcome(hl_lock_force_release(lock, ERR), HL_EFORKED);
    expect_outcome(hl_lock_inspect(lock, &info, ERR), HL_EFORKED);
    check(!hl_lock_is_held(lock, NULL) && !hl_lock_is_held(lock, owner));
    check_int(hl_lock_validity_ms(lock, NULL), 0);
    check_int(hl_lock_hold_count(lock, NULL), 0);
    check(hl_lock_name(lock, NULL) != NULL);
    expect_outcome(hl_lock_acquire_async(lock, &options, never, NULL), HL_EFORKED);
    expect_outcome(hl_lock_release_async(lock, owner, never, NULL), HL_EFORKED);
    expect_outcome(hl_lock_force_release_async(lock, never, NULL), HL_EFORKED);
    expect_outcome(hl_lock_inspect_async(lock, never_inspected, NULL), HL_EFORKED);
}

static void child_uses_client(void)
{
    hl_stats stats = {.size = sizeof stats};
    hl_lock *made = NULL;
    hl_owner *another = NULL;
    expect_outcome(hl_client_ping(client, 100, ERR), HL_EFORKED);
    expect_outcome(hl_client_fd(client), HL_EFORKED);
    expect_outcome(hl_client_dispatch(client), HL_EFORKED);
    expect_outcome(hl_client_stats(client, &stats), HL_EFORKED);
    check(hl_client_id(client) != NULL);
    expect_outcome(hl_lock_new(client, "busy", &made, ERR), HL_EFORKED);
    expect_outcome(lock_new_bytes(client, "busy", 4, &made, ERR), HL_EFORKED);
    expect_outcome(hl_owner_new(client, &another), HL_EFORKED);
    expect_outcome(hl_client_close(client), HL_EFORKED);
    hl_cancel_fire(cancel); /* the child's own copy: wakes no thread */
    hl_cancel_free(cancel);
    free_owner(owner);
    free_lock(busy);
    free_lock(held);
    expect_outcome(hl_client_close(client), HL_EFORKED);
}

/* Runs it in a child, which must end by itself: a mutex that no thread will unlock shows as
 * SIGALRM.
 */
static void in_a_child(void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        alarm((unsigned)(slow_ms(10000) / 1000));
        body();
        _exit(0);
    }
    while (waitpid(pid, &status, 0) < 0)
        check_int(errno, EINTR);
    check_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %x",
              (unsigned)status);
}

/* Before a leak checker looks at what threads of the parent have left in the child. */
static void end_at_once(void)
{
    _exit(0);
}

static void child_uses_everything(void)
{
    child_uses_lock(busy);
    child_uses_lock(held);
    child_uses_client();
}

/* ThreadSanitizer (gcc 12) forks without locking its allocator, which a thread at work may have
 * locked: free() in such a child never returns, now and then. The parent's side is checked. */
#ifdef __SANITIZE_THREAD__
#define child_that_meets_work end_at_once
#else
#define child_that_meets_work child_uses_everything
#endif

static void *work(void *arg)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    hl_stats stats = {.size = sizeof stats};
    (void)arg;
    while (!atomic_load(&is_over)) {
        expect_ok(hl_lock_acquire(busy, ERR));
        check(hl_lock_is_held(busy, NULL));
        expect_ok(hl_lock_release(busy, ERR));
        expect_ok(hl_lock_inspect(held, &info, ERR));
        check(info.locked && info.mine);
        hl_lock *made = NULL; /* not by the kit, whose mutex a fork must not meet locked */
        expect_ok(handle_new(client, "made and freed", &made, ERR));
        hl_lock_free(made);
        expect_ok(hl_client_stats(client, &stats));
    }
    return NULL;
}

static void *wait_for_held(void *arg)
{
    (void)arg;
    expect_ok(hl_lock_acquire(held, ERR));
    expect_ok(hl_lock_release(held, ERR));
    return NULL;
}

Test(fork_child, every_call_is_refused_and_the_parent_keeps_all_it_holds, .init = start,
     .fini = stop)
{
#ifdef __SANITIZE_ADDRESS__
    skip(
        "gcc's AddressSanitizer does not unlock its allocator in a child: the free() of one hangs");
#endif
    pthread_t worker[WORKERS], waiter;
    const int64_t lease_ms = slow_ms(600) + 1400;
    parent_open(lease_ms, 0);
    expect_ok(hl_lock_acquire(held, ERR));
    for (int i = 0; i < HOLDS; i++) {
        held_by_all[i] = kit_lock_number(client, "held", i);
        expect_ok(hl_lock_acquire(held_by_all[i], ERR));
    }
    waiter = kit_thread(wait_for_held, NULL);
    for (int i = 0; i < WORKERS; i++)
        worker[i] = kit_thread(work, NULL);

    struct deadline deadline = {.at_ns = now_ns() + (2 * lease_ms + 300) * 1000000};
    for (int i = 0; i < FORKS || !deadline_is_over(deadline); i++)
        in_a_child(child_that_meets_work);
    atomic_store(&is_over, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i], NULL);

    for (int i = 0; i < HOLDS; i++) {
        check(hl_lock_is_held(held_by_all[i], NULL));
        expect_ok(hl_lock_release(held_by_all[i], ERR));
        free_lock(held_by_all[i]);
    }
    expect_ok(hl_lock_release(held, ERR));
    pthread_join(waiter, NULL);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(stats_of(client).reconnects, 0);
    expect_gone(server, "busy");
    expect_gone(server, "held");
    check_str(redis_str(server, "KEYS *"), "");
    parent_close();
}

/* Everything that a client sends, but INFO, by which this is asked. */
static int64_t commands_at_the_server(void)
{
    static const char *const verbs[] = {"evalsha", "script|load", "subscribe", "unsubscribe",
                                        "ping",    "client|kill", "role"};
    int64_t count = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        count += redis_calls(server, verbs[i]);
    return count;
}

static int child_sockets;

static void child_has_no_sockets(void)
{
    child_uses_everything();
    check_int(census_sockets(), child_sockets);
}

static hl_client *other;

static void *wait_in_other(void *arg)
{
    hl_lock *lock = new_lock(other, "held");
    (void)arg;
    expect_ok(hl_lock_acquire_for(lock, slow_ms(60000), ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    return NULL;
}

Test(fork_child, nothing_of_the_child_reaches_the_server, .init = start, .fini = stop)
{
    redis_do(server, "PING");
    child_sockets = census_sockets();
    parent_open(600000, HL_CLIENT_DISPATCH); /* no renewal is due meanwhile */
    hl_client_options options = kit_options(600000, NULL);
    options.poll_ms = 60000; /* only a message wakes its wait */
    other = open_client(&options);
    kit_try_out(client, "warm"); /* the server knows the scripts */
    expect_ok(hl_lock_acquire(held, ERR));
    int64_t asked = redis_evalsha_calls(server);
    pthread_t waiter = kit_thread(wait_in_other, NULL);
    check(redis_wait_subscribers(server, "redisson_lock__channel:{held}", 1, 5000));
    struct deadline deadline = deadline_of_wait(5000); /* it asks once more, as it is subscribed */
    while (redis_evalsha_calls(server) < asked + 2 && !deadline_is_over(deadline))
        deadline_nap();
    check(!deadline_is_over(deadline));
    int64_t before = commands_at_the_server(), begin_ms = now_ms();
    for (int i = 0; i < 5; i++)
        in_a_child(child_has_no_sockets);
    int64_t sent = commands_at_the_server() - before;
    const int64_t pings = 4 * (1 + (now_ms() - begin_ms) / 5000); /* the parent's own */
    check(sent <= pings);
    check_int(redis_subscribers(server, "redisson_lock__channel:{held}"), 1);
    check_int(redis_clients(server, REDIS_NORMAL, "hirelock"), 2);

    /* epoll, too, is as it was: the loop hears of answers, of messages and of wakers. */
    expect_ok(hl_lock_release(held, ERR));
    pthread_join(waiter, NULL);
    check_int(stats_of(client).reconnects + stats_of(other).reconnects, 0);
    close_client(other);
    parent_close();
}

static void child_locks_for_itself(void)
{
    hl_client_options options = kit_options(slow_ms(30000), NULL);
    hl_client *own = open_client(&options);
    check(strcmp(hl_client_id(own), hl_client_id(client)) != 0);
    hl_lock *same = new_lock(own, "held"), *free_one = new_lock(own, "free");
    expect_outcome(hl_lock_try_acquire(same, ERR),
                   HL_EBUSY); /* the parent's, in this same thread */
    check(!hl_lock_is_held(same, NULL));
    expect_ok(hl_lock_acquire(free_one, ERR));
    check(hl_lock_is_held(free_one, NULL));
    expect_outcome(hl_lock_acquire(held, ERR), HL_EFORKED); /* an old handle beside a new client */
    expect_ok(hl_lock_release(free_one, ERR));
    free_lock(same);
    free_lock(free_one);
    close_client(own);
}

static void child_leaves_a_hold(void)
{
    hl_client_options options = kit_options(slow_ms(300), NULL);
    hl_lock *lock = new_lock(open_client(&options), "left");
    expect_ok(hl_lock_acquire(lock, ERR));
}

Test(fork_child, a_child_opens_a_client_of_its_own, .init = start, .fini = stop)
{
#ifdef HL_TEST_RUNNER
    skip("under ThreadSanitizer a child of a process with threads starts none");
#endif
    parent_open(slow_ms(30000), 0);
    expect_ok(hl_lock_acquire(held, ERR));
    for (int i = 0; i < 10; i++)
        in_a_child(child_locks_for_itself);
    in_a_child(child_leaves_a_hold);
    check(hl_lock_is_held(held, NULL));
    kit_try_out(client, "left"); /* once its lease is over */
    expect_ok(hl_lock_release(held, ERR));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_int(stats_of(client).reconnects, 0);
    parent_close();
}

static pthread_barrier_t forked;

/* The thread that forks holds, and ends in both processes. */
static void *hold_fork_and_end(void *arg)
{
    (void)arg;
    expect_ok(hl_lock_acquire(held, ERR));
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        alarm((unsigned)(slow_ms(10000) / 1000));
        atexit(end_at_once);
        pthread_exit(NULL); /* the last thread of the child: it ends with it */
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid);
    check_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's thread hangs");
    check(hl_lock_is_held(held, NULL));
    pthread_barrier_wait(&forked);
    pthread_barrier_wait(&forked);
    expect_ok(hl_lock_release(held, ERR));
    return NULL;
}

Test(fork_child, a_thread_that_ends_in_the_child_ends_no_hold_of_the_parent, .init = start,
     .fini = stop)
{
    pthread_barrier_init(&forked, NULL, 2);
    parent_open(slow_ms(900) + 2100, 0);
    pthread_t thread = kit_thread(hold_fork_and_end, NULL);
    pthread_barrier_wait(&forked);
    uint64_t renewals = stats_of(client).renewals;
    struct deadline deadline = deadline_of_wait(5000);
    while (stats_of(client).renewals < renewals + 3 && !deadline_is_over(deadline))
        deadline_nap();
    check(!deadline_is_over(deadline));
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    pthread_barrier_wait(&forked);
    pthread_join(thread, NULL);
    parent_close();
}

static void fork_from_a_callback(int code, const hl_error *err, void *arg)
{
    (void)err;
    check_int(code, HL_OK);
    in_a_child(child_uses_everything);
    expect_ok(hl_lock_release_as(busy, owner, NULL));
    atomic_store((atomic_bool *)arg, true);
}

Test(fork_child, a_fork_from_a_callback_is_like_any_other, .init = start, .fini = stop)
{
    atomic_bool done = false;
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    options.wait_ms = HL_NO_WAIT;
    parent_open(30000, 0);
    options.owner = owner;
    expect_ok(hl_lock_acquire_async(busy, &options, fork_from_a_callback, &done));
    struct deadline deadline = deadline_of_wait(10000);
    while (!atomic_load(&done) && !deadline_is_over(deadline))
        deadline_nap();
    check(atomic_load(&done));
    kit_try_out(client, "busy");
    parent_close();
}

/* Stream sockets of this process among its first descriptors. */
static int count_sockets(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        int type = 0;
        socklen_t size = sizeof type;
        count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    }
    return count;
}

static bool has_one_more(void *arg)
{
    return count_sockets() == *(int *)arg + 1;
}

/* A server that does not get round to accepting: its queue stays full. */
static int listen_and_never_accept(struct sockaddr_in *address, int *filler)
{
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    check_int(bind(fd, (struct sockaddr *)address, size), 0);
    check_int(listen(fd, 0), 0);
    check_int(getsockname(fd, (struct sockaddr *)address, &size), 0);
    *filler = socket(AF_INET, SOCK_STREAM, 0);
    check_int(connect(*filler, (struct sockaddr *)address, size), 0);
    return fd;
}

/* Or its parent would look alive to the server for as long as the child lives. */
Test(fork_child, has_no_socket_that_its_parent_is_just_connecting)
{
    struct sockaddr_in address;
    int filler, fd = listen_and_never_accept(&address, &filler), before = count_sockets(), status;
    char url[64];
    hl_client_options options = kit_options(30000, &events);
    options.flags = HL_CLIENT_LAZY;
    options.connect_timeout_ms = 60000;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    hl_client *dialling = open_client_at(url, &options);
    check(wait_until(has_one_more, &before, 10000));
    pid_t child = fork();
    if (child == 0)
        _exit(count_sockets() - before);
    check_int(waitpid(child, &status, 0), child);
    check(WIFEXITED(status));
    check_int(WEXITSTATUS(status), 0);
    close_client(dialling);
    close(filler);
    close(fd);
}
