/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Which JVM a word is for, and what each test finds and leaves there. */
#include "redisson.h"

#include <stdarg.h>
#include <time.h>

#include "support/fatal.h"

/* A JVM that has just been started on a busy machine takes its time. */
enum { PATIENCE_MS = 40000 };

/* Numbers of the JVM apart begin here. */
enum { APART = 1 << 20 };

static const char variable[] = "HL_INTEROP_JVM";
static const char apart_client[] = "other";

static struct worker *of_program; /* in the process that starts the tests */
static struct worker *shared, *apart;

BeforeAll()
{
    if (java_lacks())
        return;
    of_program = java_start("Main");
    setenv(variable, worker_dir(of_program), 1);
    servers_begin();
}

AfterAll()
{
    servers_end();
    worker_leave(of_program);
}

/* ---- Lines ---- */

static bool is_apart(const char *who)
{
    return strncmp(who, apart_client, sizeof apart_client - 1) == 0 &&
           who[sizeof apart_client - 1] == '/';
}

static int begin_line(const char *who, const char *words)
{
    char line[1024];
    const char *client = strchr(who, '/') || strcmp(who, "-") == 0 ? "" : "java/";
    snprintf(line, sizeof line, "%s%s %s", client, who, words);
    return is_apart(who) ? APART + worker_ask(apart, line) : worker_ask(shared, line);
}

static const struct worker_answer *answer_of(int number, int64_t ms)
{
    return number >= APART ? worker_answer(apart, number - APART, ms)
                           : worker_answer(shared, number, ms);
}

static const struct worker_answer *await_answer(int number)
{
    const struct worker_answer *answer = answer_of(number, PATIENCE_MS);
    check_msg(answer->ended_ns != 0, "Java does not answer; it has logged: %s",
              worker_log(number >= APART ? apart : shared));
    return answer;
}

const char *redisson_end(int number)
{
    const struct worker_answer *answer = await_answer(number);
    check_msg(!answer->threw, "Java threw %s", answer->text);
    return answer->text;
}

const char *redisson_end_thrown(int number)
{
    const struct worker_answer *answer = await_answer(number);
    check_msg(answer->threw, "Java threw nothing: %s", answer->text);
    return answer->text;
}

bool redisson_is_done(int number)
{
    return answer_of(number, 0)->ended_ns != 0;
}

int64_t redisson_ended_ms(int number)
{
    return await_answer(number)->ended_ns / 1000000;
}

static int begin_format(const char *who, const char *format, va_list args)
{
    char words[1024];
    vsnprintf(words, sizeof words, format, args);
    return begin_line(who, words);
}

int redisson_begin(const char *who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int number = begin_format(who, format, args);
    va_end(args);
    return number;
}

const char *redisson_do(const char *who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int number = begin_format(who, format, args);
    va_end(args);
    return redisson_end(number);
}

int64_t redisson_number(const char *who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = redisson_end(begin_format(who, format, args));
    va_end(args);
    char *end = NULL;
    int64_t value = strtoll(text, &end, 10);
    check_msg(end != text && *end == '\0', "not a number: %s", text);
    return value;
}

/* ---- Clients ---- */

static const char *open_in(bool is_apart_, const char *client, int64_t watchdog_ms)
{
    char line[512];
    snprintf(line, sizeof line, "- open %s %s %lld", client, servers_url(), (long long)watchdog_ms);
    return redisson_end(is_apart_ ? APART + worker_ask(apart, line) : worker_ask(shared, line));
}

const char *redisson_open(const char *client, int64_t watchdog_ms)
{
    return open_in(false, client, watchdog_ms);
}

void redisson_close(const char *client)
{
    redisson_do("-", "close %s", client);
}

void redisson_open_apart(int64_t watchdog_ms)
{
    apart = java_start("Main");
    open_in(true, apart_client, watchdog_ms);
}

void redisson_kill_apart(void)
{
    worker_kill(apart);
}

static const char *manage(const char *order, const char *who)
{
    return redisson_do("-", "%s %s%s", order, strchr(who, '/') ? "" : "java/", who);
}

void redisson_interrupt(const char *who)
{
    manage("interrupt", who);
}

static bool is_asleep(void *who)
{
    return strcmp(manage("isAsleep", who), "true") == 0;
}

void expect_asleep(const char *who)
{
    check_msg(wait_until(is_asleep, (void *)who, PATIENCE_MS), "%s does not wait", who);
}

/* ---- Begin and end ---- */

void close_all(void)
{
    redisson_do("-", "closeAll");
}

static void begin_with(void (*up)(void))
{
    const char *lack = java_lacks();
    if (lack)
        skip("%s", lack);
    up();
    shared = worker_join(getenv(variable));
    close_all(); /* what a failed test has left */
    worker_log(shared);
    redisson_open("java", 0);
}

void redisson_up(void)
{
    begin_with(servers_up);
}

void redisson_up_own(void)
{
    begin_with(servers_up_own);
}

void redisson_up_plain(void)
{
    begin_with(servers_up_plain);
}

/* The watchdog of Redisson tells as an error that it meets the end of its client. */
void expect_silence(void)
{
    const char *log = worker_log(shared);
    check_msg(log[0] == '\0', "Java has logged: %s", log);
    close_all();
    log = worker_log(shared);
    check_msg(log[0] == '\0' || strstr(log, "RedissonShutdownException"), "Java has logged: %s",
              log);
    log = apart ? worker_log(apart) : "";
    check_msg(log[0] == '\0', "Java apart has logged: %s", log);
}

void redisson_down(void)
{
    if (!shared)
        return;
    worker_leave(shared);
    worker_leave(apart);
    servers_flush(); /* who waits still, in a test that failed, need not for long */
    server_down();
}

const char *redisson_take_log(void)
{
    return worker_log(shared);
}

int listeners(const char *channel)
{
    redisReply *reply =
        redis_command(server_of(channel),
                      servers_shard() ? "PUBSUB SHARDNUMSUB %s" : "PUBSUB NUMSUB %s", channel);
    must(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    int count = (int)reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

struct listening {
    const char *channel;
    int n;
};

static bool are_listening(void *arg)
{
    const struct listening *wanted = arg;
    return listeners(wanted->channel) == wanted->n;
}

void expect_listening(const char *channel, int n)
{
    check_msg(wait_until(are_listening, &(struct listening){channel, n}, PATIENCE_MS),
              "%d listen to %s, expected %d; Java has logged: %s", listeners(channel), channel, n,
              worker_log(shared));
}

hl_client *open_client_that_hardly_polls(void)
{
    return open_client(CLIENT(.poll_ms = REDISSON_LEASE_MS));
}

void expect_woken(int64_t then_ms, int64_t since_ms)
{
    enum { NO_TIMER_MS = 19000 }; /* a lease of 30 s that is renewed every 10 s lasts longer */
    int64_t most_ms = slow_ms(LONG_BEFORE_MS);
    if (most_ms > NO_TIMER_MS)
        most_ms = NO_TIMER_MS;
    check_msg(then_ms >= since_ms && then_ms - since_ms < most_ms, "it came after %d ms",
              (int)(then_ms - since_ms));
}

int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
