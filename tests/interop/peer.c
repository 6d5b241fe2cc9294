/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* How a worker of each language is started, and what each test finds there. */
#include "peer.h"

#include <stdarg.h>
#include <unistd.h>

#include "worker.h"

/* Its process has just been started, or it waits for masters that stand still. */
enum { PATIENCE_MS = 60000 };

static const char variable[] = "HL_INTEROP_WORKER";
static struct worker *of_program; /* in the process that starts the tests */
static struct worker *worker;

/* ---- The worker ---- */

static const char *peer_path(const char *name)
{
    static char path[512];
    const char *dir = getenv("HL_INTEROP_BUILD");
    snprintf(path, sizeof path, "%s/peers/%s/%s", dir && *dir ? dir : HL_INTEROP_BUILD,
             library.language, name);
    return path;
}

/* script/interop leaves this file when all is built. */
static const char *peer_lacks(void)
{
    return access(peer_path("built"), R_OK) == 0 ? NULL : "it is not built: script/interop does it";
}

static struct worker *peer_start(void)
{
    char program[512], script[512];
    bool is_go = strcmp(library.language, "go") == 0;
    bool is_node = strcmp(library.language, "node") == 0;
    snprintf(program, sizeof program, "%s",
             is_node ? "node" : peer_path(is_go ? "worker" : "venv/bin/python"));
    snprintf(script, sizeof script, "%s", peer_path(is_node ? "worker.js" : "worker.py"));
    char *argv[] = {program, is_go ? NULL : script, NULL};
    return worker_start(argv);
}

BeforeAll()
{
    if (peer_lacks())
        return;
    of_program = peer_start();
    setenv(variable, worker_dir(of_program), 1);
}

AfterAll()
{
    worker_leave(of_program);
}

/* ---- Orders ---- */

static int begin_format(const char *who, const char *format, va_list args)
{
    char words[1024], line[1100];
    vsnprintf(words, sizeof words, format, args);
    snprintf(line, sizeof line, "%s %s", who, words);
    return worker_ask(worker, line);
}

int peer_begin(const char *who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int number = begin_format(who, format, args);
    va_end(args);
    return number;
}

bool peer_is_done(int number)
{
    return worker_answer(worker, number, 0)->ended_ns != 0;
}

const char *peer_end(int number)
{
    const struct worker_answer *answer = worker_answer(worker, number, PATIENCE_MS);
    check_msg(answer->ended_ns != 0, "%s does not answer; it has logged: %s", library.word,
              worker_log(worker));
    return answer->text;
}

const char *peer_do(const char *who, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int number = begin_format(who, format, args);
    va_end(args);
    return peer_end(number);
}

/* ---- Begin and end of a test ---- */

/* Nobody listens at port 1. */
void peer_open_reaching(const char *who, size_t count)
{
    char urls[512] = "";
    for (size_t i = 0; i < masters.count; i++) {
        size_t used = strlen(urls);
        snprintf(urls + used, sizeof urls - used, "%s%s", i > 0 ? "," : "",
                 i < count ? redis_server_url(masters.server[i]) : "redis://127.0.0.1:1");
    }
    expect_peer("-", "-", "open %s %s %s", who, library.word, urls);
}

void peer_open(const char *who)
{
    peer_open_reaching(who, masters.count);
}

static void peer_up_with(size_t count)
{
    const char *lack = peer_lacks();
    if (lack)
        skip("%s: %s", library.word, lack);
    masters_up_with(count, &(struct redis_options){.tcp = true});
    worker = worker_join(getenv(variable));
    peer_close(); /* what a failed test has left */
    peer_open("a");
    peer_open("b");
}

void peer_up_one(void)
{
    peer_up_with(1);
}

void peer_up_five(void)
{
    peer_up_with(5);
}

void peer_close(void)
{
    expect_peer("-", "-", "closeAll");
    worker_log(worker);
}

void expect_peer_silence(void)
{
    expect_peer("-", "-", "closeAll");
    const char *log = worker_log(worker);
    check_msg(log[0] == '\0', "%s has logged: %s", library.word, log);
}

void peer_down(void)
{
    if (!worker)
        return;
    worker_leave(worker);
    server_down();
}
