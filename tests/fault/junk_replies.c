/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A peer that answers what no Redis answers: the client neither crashes nor believes it, tells why,
 * and works again as soon as the peer does. */

#include <stdatomic.h>

#include "connection_fixture.h"
#include "redis/script.h"
#include "support/fake_server.h"
#include "support/fatal.h"
#include "support/process.h"

static const char taken[] = "*2\r\n:1\r\n:1\r\n", released[] = "*3\r\n:1\r\n$0\r\n\r\n:0\r\n";
static const char busy[] =
    "*6\r\n:0\r\n:60000\r\n:1700000000\r\n:0\r\n$7\r\nother:1\r\n$1\r\n1\r\n";

/* Answers EVALSHA with the junk, as often as it is told to. */
struct junk {
    struct fake_server *fake;
    hl_client *client;
    hl_lock *lock;
    char *bytes;
    size_t length;
    atomic_int times;
};

static bool junk_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    struct junk *junk = arg;
    if (!resp_command_begins(command, "EVALSHA") || atomic_load(&junk->times) == 0)
        return false;
    atomic_fetch_sub(&junk->times, 1);
    fake_reply_bytes(reply, junk->bytes, junk->length);
    return true;
}

static void junk_start_with(struct junk *junk, hl_client_options options)
{
    *junk = (struct junk){.length = 0};
    options.outage_timeout_ms = slow_ms(100);
    junk->fake = fake_server_start(junk_answer, junk);
    junk->client = open_client_at(fake_server_url(junk->fake), &options);
    junk->lock = new_lock(junk->client, "junk");
}

static void junk_start(struct junk *junk)
{
    junk_start_with(junk, connection_options());
}

static void junk_stop(struct junk *junk)
{
    free_lock(junk->lock);
    close_client(junk->client);
    fake_server_stop(junk->fake);
}

/* The client's outage timeout is short. */
static void expect_in_the_end(hl_lock *lock)
{
    struct deadline deadline = deadline_of_wait(10000);
    hl_error err = HL_ERROR_INIT;
    int code;
    do {
        code = hl_lock_acquire_for(lock, slow_ms(3000), &err);
    } while (code != HL_OK && !deadline_is_over(deadline));
    check_msg(code == HL_OK, "%s: %s", hl_err_name(code), err.text);
}

/* Junk for ever: the call ends with a reason. Then a peer that is well again. */
static void junk_check(struct junk *junk, const char *what, const char *bytes, size_t length)
{
    hl_error err = HL_ERROR_INIT;
    junk->bytes = (char *)bytes;
    junk->length = length;
    atomic_store(&junk->times, 1 << 30);
    int code = hl_lock_try_acquire(junk->lock, &err);
    check_msg(code == HL_EPROTO || code == HL_ECONN, "%s: %s: %s", what, hl_err_name(code),
              err.text);
    check_msg(strstr(err.text, "acquire 'junk': ") == err.text && strlen(err.text) > 30, "%s: %s",
              what, err.text);
    check(!hl_lock_is_held(junk->lock, NULL));
    atomic_store(&junk->times, 0);
    expect_in_the_end(junk->lock);
    code = hl_lock_release(junk->lock, &err);
    check_msg(code == HL_OK, "after %s: %s: %s", what, hl_err_name(code), err.text);
}

static void junk_check_all(const char *const *texts, size_t count)
{
    struct junk junk;
    hl_client_options options = connection_options();
    options.request_timeout_ms = slow_ms(500) + 700; /* half an answer's rest is waited for */
    junk_start_with(&junk, options);
    for (size_t i = 0; i < count; i++)
        junk_check(&junk, texts[i], texts[i], strlen(texts[i]));
    junk_stop(&junk);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(junk_replies, other_protocols_are_no_answer)
{
    static const char *const texts[] = {
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html></html>",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\x15\x03\x03",
        "\r\n\r\n",
        "*1\r\nx",
    };
    junk_check_all(texts, COUNT(texts));
}

Test(junk_replies, types_that_the_script_does_not_give_are_no_answer)
{
    static const char *const texts[] = {
        "+OK\r\n",
        ":1\r\n",
        "$1\r\n1\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1\r\n$2\r\nhi\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n*1\r\n:1\r\n",
        "*1\r\n:7\r\n",
        "*1\r\n:-9\r\n",
        "*1\r\n+OK\r\n",
        "*1\r\n:1\r\n", /* from here on: a status, and too few or too many items for it */
        "*1\r\n:0\r\n",
        "*3\r\n:1\r\n:1\r\n:1\r\n",
        "*4\r\n:0\r\n:60000\r\n$7\r\nother:1\r\n$1\r\n1\r\n",
        "*2\r\n:-1\r\n:0\r\n",
        "*2\r\n$1\r\n1\r\n:1\r\n",
    };
    junk_check_all(texts, COUNT(texts));
}

Test(junk_replies, types_of_resp3_are_no_answer)
{
    static const char *const texts[] = {
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "(12345678\r\n",
        "!5\r\nERR x\r\n",
        "=5\r\ntxt:x\r\n",
        "%1\r\n+a\r\n:1\r\n",
        "~1\r\n:1\r\n",
        ">1\r\n:1\r\n",
        "|1\r\n+a\r\n:1\r\n",
        "*1\r\n#t\r\n",
        "*1\r\n_\r\n",
    };
    junk_check_all(texts, COUNT(texts));
}

Test(junk_replies, impossible_lengths_are_no_answer)
{
    static const char *const texts[] = {
        "$2147483640\r\n",
        "*2147483647\r\n",
        "*-5\r\n",
        "$-7\r\n",
        "*1000000\r\n",
        "$99999999999999999999\r\n",
        "*99999999999999999999\r\n",
        ":99999999999999999999\r\n",
        "*1\r\n$2147483640\r\nx",
    };
    junk_check_all(texts, COUNT(texts));
}

static char *junk_repeat(const char *piece, size_t times, size_t *ret_length)
{
    size_t length = strlen(piece);
    char *bytes = malloc(length * times + 1);
    must(bytes);
    for (size_t i = 0; i < times; i++)
        memcpy(bytes + i * length, piece, length);
    *ret_length = length * times;
    return bytes;
}

Test(junk_replies, arrays_nested_300000_deep_are_no_answer)
{
    struct junk junk;
    size_t length;
    char *bytes = junk_repeat("*1\r\n", 300000, &length);
    junk_start(&junk);
    junk_check(&junk, "nesting", bytes, length);
    junk_stop(&junk);
    free(bytes);
}

/* A foreign value under a lock's name, which the script repeats: it ends the call that asked, and
 * no other call. */
Test(junk_replies, an_answer_that_is_too_large_ends_its_call_only)
{
    static const char head[] =
        "*6\r\n:0\r\n:-1\r\n:1700000000\r\n:0\r\n$7\r\nprofile\r\n$100000\r\n";
    struct junk junk;
    size_t length;
    char *text = junk_repeat("x", sizeof head + 100002, &length);
    memcpy(text, head, sizeof head - 1);
    strcpy(text + sizeof head - 1 + 100000, "\r\n");
    junk_start(&junk);
    hl_lock *innocent = new_lock(junk.client, "innocent");
    expect_in_the_end(innocent);
    junk_check(&junk, "a large value", text, strlen(text));
    check(hl_lock_is_held(innocent, NULL));
    check_int(stats_of(junk.client).reconnects, 0);
    expect_ok(hl_lock_release(innocent, ERR));
    free_lock(innocent);
    junk_stop(&junk);
    free(text);
}

Test(junk_replies, an_endless_line_is_no_answer)
{
    struct junk junk;
    size_t length;
    char *bytes = junk_repeat("+a long line without an end ", 10000, &length);
    junk_start(&junk);
    junk_check(&junk, "a line", bytes, length);
    junk_stop(&junk);
    free(bytes);
}

static long memory_peak_kb(void)
{
    char line[128];
    long peak = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (status)
        fclose(status);
    return peak;
}

enum { GIANT_URL, GIANT_DONE };

/* In a child, whose memory is the client's alone. */
static void giant_client(struct process *self, void *arg)
{
    hl_client_options options = connection_options();
    (void)arg;
    options.request_timeout_ms = slow_ms(1000) + 2000; /* the length ends it, not the time */
    options.outage_timeout_ms = slow_ms(300);
    check(process_await(self, GIANT_URL, 1, 5000));
    hl_client *client = open_client_at(process_shared(self), &options);
    hl_lock *lock = new_lock(client, "giant");
    long before = memory_peak_kb();
    expect_outcome(hl_lock_try_acquire(lock, ERR), HL_EPROTO);
    long growth = memory_peak_kb() - before;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)growth; /* a sanitizer keeps what was freed, or a shadow of it */
#else
    check_msg(growth < 4 * 1024, "%ld KiB more", growth);
#endif
    free_lock(lock);
    close_client(client);
}

/* An honest header of something huge, and then all of it. */
static void giant_check(const char *header, const char *piece, size_t times)
{
    struct process *child = process_start(giant_client, NULL);
    struct junk junk = {.length = 0};
    size_t length, header_length = strlen(header);
    char *body = junk_repeat(piece, times, &length);

    junk.bytes = malloc(header_length + length);
    must(junk.bytes);
    memcpy(junk.bytes, header, header_length);
    memcpy(junk.bytes + header_length, body, length);
    junk.length = header_length + length;
    atomic_store(&junk.times, 1 << 30);
    junk.fake = fake_server_start(junk_answer, &junk);
    snprintf(process_shared(child), 128, "%s", fake_server_url(junk.fake));
    process_tell(child, GIANT_URL);
    check_int(process_finish(child, 30000), 0);
    fake_server_stop(junk.fake);
    free(junk.bytes);
    free(body);
}

Test(junk_replies, a_giant_string_is_not_collected)
{
    giant_check("*1\r\n$12000000\r\n", "0123456789abcdef", 12000000 / 16);
}

Test(junk_replies, a_giant_array_is_not_collected)
{
    giant_check("*1000\r\n", "$10\r\n0123456789\r\n", 700000);
}

/* Both requests are in flight when the answers come, one more than there are requests. Whoever
 * believed the second array would enter a lock that another holds. */
struct shift {
    atomic_bool is_on;
};

static bool shift_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    struct shift *shift = arg;
    if (!resp_command_begins(command, "EVALSHA") ||
        !resp_command_arg_is(command, 1, hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE)->sha1))
        return false;
    bool is_first = resp_command_arg_is(command, 3, "first");
    if (is_first && atomic_load(&shift->is_on))
        return true; /* answered below */
    if (!is_first && atomic_exchange(&shift->is_on, false)) {
        fake_reply_text(reply, "+SURPLUS\r\n");
        fake_reply_text(reply, taken);
    }
    fake_reply_text(reply, is_first ? taken : busy);
    return true;
}

Test(junk_replies, a_surplus_answer_gives_no_request_the_answer_of_another)
{
    struct shift shift = {true};
    struct fake_server *fake = fake_server_start(shift_answer, &shift);
    hl_client_options options = connection_options();
    struct connection_call first;
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock[] = {new_lock(client, "first"), new_lock(client, "second")};

    connection_call_start(&first, lock[0], slow_ms(5000));
    check(fake_server_wait_count(fake, "EVALSHA", 1, 5000));
    expect_outcome(hl_lock_try_acquire(lock[1], ERR), HL_EBUSY);
    connection_join(&first);
    check_msg(first.code == HL_OK, "%s", first.err.text);
    for (int i = 0; i < 2; i++)
        free_lock(lock[i]);
    close_client(client);
    fake_server_stop(fake);
}

Test(junk_replies, a_surplus_answer_to_nothing_drops_the_connection_only)
{
    static const char *const surplus[] = {
        "+EXTRA\r\n", ":1\r\n*1\r\n:1\r\n", "-ERR something\r\n", taken, released, busy};
    struct junk junk;
    junk_start(&junk);
    for (size_t i = 0; i < COUNT(surplus); i++) {
        fake_server_send(junk.fake, surplus[i], strlen(surplus[i]));
        wait_stat(junk.client, reconnects, i + 1);
        expect_in_the_end(junk.lock);
        expect_ok(hl_lock_release(junk.lock, ERR));
    }
    junk_stop(&junk);
}

/* A reply to a renewal is an array too: it must not be taken for another request's. */
static bool renewal_junk_answer(const struct resp_command *command, struct fake_reply *reply,
                                void *arg)
{
    static const char *const texts[] = {"+OK\r\n", "*1\r\n:1\r\n", "*2\r\n:9\r\n:1\r\n",
                                        "*2\r\n+a\r\n+b\r\n", "*4\r\n:0\r\n:1\r\n:2\r\n:3\r\n"};
    atomic_int *renewals = arg;
    if (!resp_command_begins(command, "EVALSHA") ||
        !resp_command_arg_is(command, 1, hli_script_get(HLI_SCRIPT_LOCK_RENEW)->sha1))
        return false;
    int number = atomic_fetch_add(renewals, 1);
    fake_reply_text(reply, number < (int)COUNT(texts) ? texts[number] : "*0\r\n");
    return true;
}

Test(junk_replies, an_odd_answer_to_a_renewal_renews_nothing_and_loses_nothing)
{
    atomic_int renewals = 0;
    struct fake_server *fake = fake_server_start(renewal_junk_answer, &renewals);
    hl_client_options options = connection_options();
    options.watchdog_timeout_ms = slow_ms(1500) + 6000;
    options.request_timeout_ms = slow_ms(CONNECTION_PATIENCE_MS); /* so often it is tried again */
    hl_client *client = open_client_at(fake_server_url(fake), &options);
    hl_lock *lock = new_lock(client, "junk");
    expect_ok(hl_lock_acquire(lock, ERR));
    wait_stat(client, renewals, 1);
    check(atomic_load(&renewals) > 5);
    check(hl_lock_is_held(lock, NULL));
    check_int(stats_of(client).losses, 0);
    free_lock(lock);
    close_client(client);
    fake_server_stop(fake);
}

/* Junk instead of a handshake's answers. */
static void handshake_check_refused(const char *hello, int expected, const char *text)
{
    const struct fake_step steps[] = {{.expect = "", .answer = hello, .then = FAKE_CLOSE},
                                      {.expect = "", .answer = hello, .then = FAKE_CLOSE}};
    struct fake_server *fake = fake_server_start(NULL, NULL);
    hl_client_options options = connection_options();
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    fake_server_play(fake, steps, 2);
    int code = hl_client_open(fake_server_url(fake), &options, &client, &err);
    check_msg(code == expected, "%s: %s: %s", hello, hl_err_name(code), err.text);
    check_msg(strncmp(err.text, "127.0.0.1:", 10) == 0 && strstr(err.text, text), "%s: %s", hello,
              err.text);
    fake_server_stop(fake);
}

Test(junk_replies, a_peer_that_is_no_redis_is_told_at_open)
{
    handshake_check_refused("SSH-2.0-OpenSSH_9.2\r\n", HL_EPROTO, "does not speak Redis");
    handshake_check_refused("HTTP/1.1 400 Bad Request\r\n\r\n", HL_EPROTO, "does not speak Redis");
    handshake_check_refused("220 mail.example ESMTP\r\n", HL_EPROTO, "does not speak Redis");
}

Test(junk_replies, the_last_error_before_a_hang_up_is_the_reason)
{
    handshake_check_refused("-ERR max number of clients reached\r\n", HL_ESERVER,
                            "ERR max number of clients reached");
    handshake_check_refused("-DENIED Redis is running in protected mode\r\n", HL_EDENIED,
                            "protected mode");
}

/* Messages that no client of the lock sends. */
Test(junk_replies, odd_messages_wake_a_waiter_at_most)
{
    server = redis_server_start(NULL);
    hl_client_options options = connection_options();
    struct connection_call call;
    options.request_timeout_ms = slow_ms(5000);
    hl_client *holder = open_client_at(redis_server_url(server), &options);
    hl_client *waiter = open_client_at(redis_server_url(server), &options);
    hl_lock *held = new_lock(holder, "odd"), *wanted = new_lock(waiter, "odd");
    size_t length;
    char *giant = junk_repeat("x", 200 * 1024, &length);
    giant[length] = '\0';

    expect_ok(hl_lock_acquire(held, ERR));
    connection_call_start(&call, wanted, slow_ms(10000));
    for (int i = 0; i < 3; i++) {
        static const char channel[] = "redisson_lock__channel:{odd}";
        check(redis_wait_subscribers(server, channel, 1, 5000));
        redis_do(server, "PUBLISH %s %b", channel, "", (size_t)0);
        redis_do(server, "PUBLISH %s %b", channel, "\r\n*1\r\n:1\r\n", (size_t)10);
        redis_do(server, "PUBLISH %s 7", channel);
        redis_do(server, "PUBLISH %s %s", channel, giant); /* more than we read of one reply */
    }
    check_int(stats_of(waiter).reconnects, 0);
    check_int(stats_of(waiter).waiters_now, 1);
    expect_ok(hl_lock_release(held, ERR));
    connection_join(&call);
    check_msg(call.code == HL_OK && call.lasted_ms < slow_ms(8000), "%s", call.err.text);
    free(giant);
    free_lock(held);
    free_lock(wanted);
    close_client(holder);
    close_client(waiter);
    redis_server_stop(server);
}
