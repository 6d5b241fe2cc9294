/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Opening a client where no server answers, or one that refuses: in bounded time, with a reason
 * that a person can act on, and never with the password in it. */

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "connection_fixture.h"
#include "lease/calls/client.h"
#include "support/fake_server.h"
#include "support/listener.h"
#include "support/raw_client.h"

/* All texts that a client gave to the program. */
struct words {
    pthread_mutex_t mutex;
    char text[16384];
    int disconnected, connected;
};

static void words_add(struct words *words, const char *text)
{
    pthread_mutex_lock(&words->mutex);
    size_t used = strlen(words->text);
    snprintf(words->text + used, sizeof words->text - used, "%s\n", text);
    pthread_mutex_unlock(&words->mutex);
}

static void words_log(hl_log_level level, const char *text, void *arg)
{
    (void)level;
    words_add(arg, text);
}

static void words_event(const hl_event *event, void *arg)
{
    words_add(arg, event->reason);
}

static void words_of(struct words *words, hl_client_options *options)
{
    *words = (struct words){.mutex = PTHREAD_MUTEX_INITIALIZER};
    options->on_log = words_log;
    options->on_event = words_event;
    options->log_level = HL_LOG_DEBUG;
    options->arg = words;
}

/* Opens in vain, and not for long; the text is *ret_err's. */
static int open_in_vain(const char *url, hl_client_options *options, hl_error *ret_err)
{
    hl_client *client = NULL;
    int64_t begin_ms = now_ms();
    int code = hl_client_open(url, options, &client, ret_err);
    check_msg(code < 0, "%s was opened", url);
    check_msg(client == NULL, "a client in spite of %s", hl_err_name(code));
    check_int(ret_err->code, code);
    check_msg(now_ms() - begin_ms < options->connect_timeout_ms + slow_ms(8000), "%lld ms: %s",
              (long long)(now_ms() - begin_ms), ret_err->text);
    return code;
}

Test(connection_open, tells_that_the_port_is_closed)
{
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    char url[64], expected[96];
    int port = listener_free_port();
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    snprintf(expected, sizeof expected, "connect 127.0.0.1:%d: connection refused", port);
    check_int(open_in_vain(url, &options, &err), HL_ECONN);
    check_str(err.text, expected);
    snprintf(url, sizeof url, "redis://[::1]:%d", port);
    snprintf(expected, sizeof expected, "connect [::1]:%d: ", port);
    check_int(open_in_vain(url, &options, &err), HL_ECONN);
    check_msg(strncmp(err.text, expected, strlen(expected)) == 0, "%s", err.text);
}

Test(connection_open, tells_that_the_unix_socket_is_not_there)
{
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    check_int(open_in_vain("unix:///nonexistent/redis.sock", &options, &err), HL_ECONN);
    check_str(err.text, "connect /nonexistent/redis.sock: no such file or directory");
    check_int(open_in_vain("unix:///tmp", &options, &err), HL_ECONN);
    check_str(err.text, "connect /tmp: connection refused");
    char url[300] = "unix:///";
    memset(url + 8, 'x', 200);
    check_int(open_in_vain(url, &options, &err), HL_ECONN);
    check_msg(strstr(err.text, "too long"), "%s", err.text);
}

Test(connection_open, tells_that_a_name_does_not_exist)
{
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    options.connect_timeout_ms = slow_ms(400);
    check_int(open_in_vain("redis://no-such-host.invalid", &options, &err), HL_ECONN);
    check_msg(strstr(err.text, "connect no-such-host.invalid:6379: ") == err.text, "%s", err.text);
    check_msg(strstr(err.text, "name"), "nothing about names: %s", err.text);
}

static void open_and_lock(const char *url)
{
    hl_client_options options = connection_options();
    hl_client *client = open_client_at(url, &options);
    hl_lock *lock = new_lock(client, "opened");
    expect_ok(hl_lock_try_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
}

Test(connection_open, finds_localhost_by_name)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
    char url[64];
    snprintf(url, sizeof url, "redis://localhost:%d", redis_server_port(server));
    open_and_lock(url);
    snprintf(url, sizeof url, "redis://LOCALHOST:%d", redis_server_port(server));
    open_and_lock(url);
    redis_server_stop(server);
}

Test(connection_open, takes_a_numeric_ipv6_address)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    char config[64], url[64];
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) < 0)
        skip("IPv6 on the loopback: %m");
    close(fd);
    int port = listener_free_port();
    snprintf(config, sizeof config, "bind ::1\nport %d", port);
    server = redis_server_start(&(struct redis_options){.config = config});
    snprintf(url, sizeof url, "redis://[::1]:%d", port);
    open_and_lock(url);
    redis_server_stop(server);
}

/* A socket that listens and whose queue is full: the kernel drops what more wants to connect. */
struct black_hole {
    int listener, port;
    int fill[8];
};

static void black_hole_open(struct black_hole *hole)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    hole->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check_int(bind(hole->listener, (struct sockaddr *)&address, size), 0);
    check_int(listen(hole->listener, 0), 0);
    check_int(getsockname(hole->listener, (struct sockaddr *)&address, &size), 0);
    hole->port = ntohs(address.sin_port);
    for (size_t i = 0; i < 8; i++) {
        hole->fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check(connect(hole->fill[i], (struct sockaddr *)&address, size) == 0 ||
              errno == EINPROGRESS);
    }
}

static void black_hole_close(struct black_hole *hole)
{
    for (size_t i = 0; i < 8; i++)
        close(hole->fill[i]);
    close(hole->listener);
}

Test(connection_open, gives_up_a_black_hole_by_its_own_timeout)
{
    struct black_hole hole;
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    char url[64], expected[96];
    black_hole_open(&hole);
    options.connect_timeout_ms = slow_ms(200);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", hole.port);
    snprintf(expected, sizeof expected, "connect 127.0.0.1:%d: no answer within %lld ms", hole.port,
             (long long)options.connect_timeout_ms);
    check_int(open_in_vain(url, &options, &err), HL_ECONN);
    check_str(err.text, expected);
    black_hole_close(&hole);
}

Test(connection_open, gives_up_a_server_that_accepts_and_is_silent)
{
    struct connection c = connection_start(NULL);
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    options.connect_timeout_ms = slow_ms(200);
    options.request_timeout_ms = slow_ms(5000);
    proxy_hold(c.proxy, PROXY_EVERY, PROXY_DOWN);
    check_int(open_in_vain(proxy_url(c.proxy), &options, &err), HL_ECONN);
    check_msg(strstr(err.text, "no answer within"), "%s", err.text);
    const char *where = strstr(err.text, "127.0.0.1:");
    check_msg(where && !strstr(where + 1, "127.0.0.1:"), "%s", err.text);
    connection_stop(&c);
}

/* An idle connection that is not used takes one of the few places. */
static void fill_with_clients(int limit, redisContext **taken)
{
    for (int i = 0; i < limit; i++)
        taken[i] = raw_connect(redis_server_port(server));
    for (int i = 0; i < limit; i++)
        raw_send(taken[i], "PING");
}

static void check_full_server(const char *password)
{
    server = redis_server_start(&(struct redis_options){.tcp = true, .password = password});
    redisContext *taken[8];
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    options.password = password;
    redis_do(server, "CONFIG SET maxclients 5");
    fill_with_clients(8, taken);
    int code = open_in_vain(redis_server_url(server), &options, &err);
    check_msg(code == HL_ESERVER || code == HL_ECONN, "%s: %s", hl_err_name(code), err.text);
    check_msg(strstr(err.text, "max number of clients reached"), "%s", err.text);
    for (int i = 0; i < 8; i++)
        redisFree(taken[i]);
    redis_server_stop(server);
}

Test(connection_open, tells_that_the_server_has_too_many_clients)
{
    for (int i = 0; i < 5; i++)
        check_full_server(NULL);
}

Test(connection_open, too_many_clients_is_no_wrong_password)
{
    for (int i = 0; i < 5; i++)
        check_full_server("a-pass-word");
}

static const char secret[] = "s3cr3t/Pass:word";

/* Refused at once, by open and by a call of a lazy client; nowhere a word of the password. */
static void check_denied(const char *url, const char *password, const char *text)
{
    hl_client_options options = connection_options();
    struct words words;
    hl_error err = HL_ERROR_INIT;
    words_of(&words, &options);
    options.password = password;
    options.outage_timeout_ms = slow_ms(60000);
    int64_t begin_ms = now_ms();
    check_int(open_in_vain(url, &options, &err), HL_EDENIED);
    check_msg(strstr(err.text, text), "%s", err.text);
    check_msg(!strstr(err.text, secret), "%s", err.text);

    options.flags = HL_CLIENT_LAZY;
    hl_client *client = open_client_at(url, &options);
    hl_lock *lock = new_lock(client, "denied");
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_EDENIED);
    check_msg(strstr(err.text, text) && !strstr(err.text, secret), "%s", err.text);
    check_msg(now_ms() - begin_ms < slow_ms(30000), "%lld ms", (long long)(now_ms() - begin_ms));
    free_lock(lock);
    close_client(client);
    check_msg(!strstr(words.text, secret), "%s", words.text);
}

Test(connection_open, is_denied_without_a_password_and_with_a_wrong_one)
{
    server = redis_server_start(&(struct redis_options){.tcp = true, .password = "right"});
    check_denied(redis_server_url(server), NULL, "NOAUTH");
    check_denied(redis_server_url(server), secret, "WRONGPASS");
    redis_server_stop(server);
}

Test(connection_open, a_password_that_the_server_does_not_want_is_told)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
    check_denied(redis_server_url(server), secret, "ERR");
    redis_server_stop(server);
}

/* A peer that repeats what it got: in the answer to AUTH, in one that comes after it, at once. */
static bool echo_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    if (!resp_command_begins(command, arg))
        return false;
    fake_reply_format(reply, "-ERR unknown command 'AUTH', beginning with: '%s'\r\n", secret);
    return true;
}

static bool echo_word_answer(const struct resp_command *command, struct fake_reply *reply,
                             void *arg)
{
    if (!resp_command_begins(command, arg))
        return false;
    fake_reply_format(reply, "-%s\r\n", secret);
    return true;
}

static void check_echo(fake_handler *handler, const char *words_answered, bool opens)
{
    struct fake_server *fake = fake_server_start(handler, (void *)words_answered);
    hl_client_options options = connection_options();
    struct words words;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    char url[128];
    words_of(&words, &options);
    options.outage_timeout_ms = slow_ms(opens ? 3000 : 300);
    options.request_timeout_ms = slow_ms(500); /* so long a close waits for releases */
    snprintf(url, sizeof url, "redis://:s3cr3t%%2FPass%%3Aword@127.0.0.1:%d/2",
             fake_server_port(fake));
    int code = hl_client_open(url, &options, &client, &err);
    check_msg((code == HL_OK) == opens, "%s: %s", words_answered, err.text);
    check_msg(!strstr(err.text, secret), "%s", err.text);
    if (code == HL_OK) {
        hl_lock *lock = new_lock(client, "echo");
        check(hl_lock_try_acquire(lock, &err) < 0);
        check_msg(!strstr(err.text, secret), "%s", err.text);
        fake_server_close_all(fake, FAKE_RESET);
        wait_stat(client, reconnects, 1);
        free_lock(lock);
        close_client(client);
    }
    check_msg(!strstr(words.text, secret), "%s", words.text);
    fake_server_stop(fake);
}

Test(connection_open, a_peer_that_repeats_the_password_gives_it_away_nowhere)
{
    static const char *const refused[] = {"AUTH", "SELECT"};
    for (int i = 0; i < 2; i++) {
        check_echo(echo_answer, refused[i], false);
        check_echo(echo_word_answer, refused[i], false);
    }
    check_echo(echo_answer, "EVALSHA", true);
    check_echo(echo_word_answer, "EVALSHA", true);
}

Test(connection_open, a_surplus_text_with_the_password_gives_it_away_nowhere)
{
    const char text[] = "-ERR unknown command 's3cr3t/Pass:word'\r\n";
    const struct fake_step steps[] = {{.expect = "CLIENT", .answer = text, .then = FAKE_CLOSE},
                                      {.expect = "", .answer = text, .then = FAKE_CLOSE}};
    for (size_t i = 0; i < 2; i++) {
        struct fake_server *fake = fake_server_start(NULL, NULL);
        hl_client_options options = connection_options();
        struct words words;
        hl_error err = HL_ERROR_INIT;
        words_of(&words, &options);
        options.password = secret;
        fake_server_play(fake, &steps[i], 1);
        check(open_in_vain(fake_server_url(fake), &options, &err) < 0);
        check_msg(!strstr(err.text, secret), "%s", err.text);
        check_msg(!strstr(words.text, secret), "%s", words.text);
        fake_server_stop(fake);
    }
}

/* As a server that speaks TLS ends what is no TLS. */
Test(connection_open, a_peer_that_hangs_up_unheard_may_speak_tls)
{
    const struct fake_step steps[] = {{.expect = "INFO", .answer = "", .then = FAKE_RESET},
                                      {.expect = "INFO", .answer = "", .then = FAKE_RESET}};
    struct fake_server *fake = fake_server_start(NULL, NULL);
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    fake_server_play(fake, steps, 2);
    check_int(open_in_vain(fake_server_url(fake), &options, &err), HL_ECONN);
    check_msg(strstr(err.text, "if it speaks TLS: rediss://"), "%s", err.text);
    check_msg(!strstr(err.text, ": Conn"), "%s", err.text);
    fake_server_stop(fake);
}

struct twins {
    atomic_int asked, apart; /* how many INFOs; are there two servers? */
};

static bool twins_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    struct twins *twins = arg;
    char info[128];
    if (!resp_command_begins(command, "INFO"))
        return false;
    int number = atomic_fetch_add(&twins->asked, 1) % 2;
    snprintf(info, sizeof info, "# Server\r\nrun_id:%040d\r\n",
             atomic_load(&twins->apart) ? number : 7);
    fake_reply_bulk(reply, info, strlen(info));
    return true;
}

/* As behind a balancer: a subscriber of one server receives no message of the other. */
Test(connection_open, two_connections_that_lead_to_two_servers_are_refused)
{
    struct twins twins = {0, 1};
    struct fake_server *fake = fake_server_start(twins_answer, &twins);
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    check_int(open_in_vain(fake_server_url(fake), &options, &err), HL_ECONN);
    check_msg(strstr(err.text, "two servers"), "%s", err.text);
    atomic_store(&twins.apart, 0);
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    close_client(client);
    fake_server_stop(fake);
}

/* The lines behind it may change from one answer to the next. */
static bool brief_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    char info[160];
    if (!resp_command_begins(command, "INFO"))
        return false;
    snprintf(info, sizeof info,
             "# Server\r\nrun_id:7c2\r\nserver_time_usec:%d\r\n"
             "uptime_in_seconds:99999999999999999999\r\n",
             1000 + atomic_fetch_add((atomic_int *)arg, 1));
    fake_reply_bulk(reply, info, strlen(info));
    return true;
}

Test(connection_open, a_server_of_a_short_run_id_and_an_endless_uptime_is_one_server)
{
    static atomic_int asked;
    struct fake_server *fake = fake_server_start(brief_answer, &asked);
    hl_client_options options = connection_options();
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    struct hli_link *link = hli_client_link(client, 0, 0);
    check_int(hli_link_server(link), 0x7c2);
    check_int(hli_link_server_began(link), HLI_NEVER); /* it does not tell */
    close_client(client);
    fake_server_stop(fake);
}

/* connect(2) says "again" there, where TCP waits. */
Test(connection_open, a_unix_socket_with_a_full_queue_is_waited_for)
{
    char path[64], url[80];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];
    hl_client_options options = connection_options();
    hl_error err = HL_ERROR_INIT;
    snprintf(path, sizeof path, "/tmp/hl-full-%d.sock", getpid());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    check_int(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    check_int(listen(listener, 0), 0);
    for (int i = 0; i < 4; i++) {
        fill[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&address, sizeof address);
    }
    options.connect_timeout_ms = slow_ms(200);
    snprintf(url, sizeof url, "unix://%s", path);
    check_int(open_in_vain(url, &options, &err), HL_ECONN);
    check_msg(strstr(err.text, "no answer within"), "%s", err.text);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(listener);
    unlink(path);
}
