/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A worker's input, output and log are files of one directory, so that any process can use it. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/deadline.h"
#include "support/fatal.h"
#include "support/spawn.h"

enum { ANSWERS = 1024, LINE = 2048, LOG = 8192 };

struct worker {
    char dir[64];
    pid_t pid;        /* 0: another process's, or killed */
    bool is_mine;     /* this process started it */
    int in, out, log; /* of the directory; `in` is also what tests hold the lock of */
    int asked;        /* numbers given */
    struct worker_answer answers[ANSWERS];
    char unread[LINE];
    size_t unread_length;
    char log_text[LOG];
};

static const char *worker_path(const struct worker *worker, const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", worker->dir, name);
    return path;
}

/* ---- Start and end ---- */

/* A pipe that is open for reading and writing has neither an end nor a missing reader. */
static int worker_open(const struct worker *worker, const char *name, int flags)
{
    int fd = open(worker_path(worker, name), flags | O_CLOEXEC, 0600);
    if (fd < 0)
        fatal_errno("open %s/%s", worker->dir, name);
    return fd;
}

static void worker_open_all(struct worker *worker)
{
    worker->in = worker_open(worker, "in", worker->is_mine ? O_RDWR : O_WRONLY);
    worker->out = worker_open(worker, "out", O_RDWR | O_NONBLOCK);
    worker->log = worker_open(worker, "log", O_RDWR | O_CREAT);
}

static void worker_spawn(struct worker *worker, char *const argv[])
{
    char in[96], out[96], log[96];
    snprintf(in, sizeof in, "%s/in", worker->dir);
    snprintf(out, sizeof out, "%s/out", worker->dir);
    snprintf(log, sizeof log, "%s/log", worker->dir);
    worker->pid =
        spawn_start(&(struct spawn){.argv = argv, .input = in, .output = out, .errors = log});
}

struct worker *worker_start(char *const argv[])
{
    struct worker *worker = calloc(1, sizeof *worker);
    must(worker);
    worker->is_mine = true;
    snprintf(worker->dir, sizeof worker->dir, "/tmp/hl-worker-XXXXXX");
    if (!mkdtemp(worker->dir) || mkfifo(worker_path(worker, "in"), 0600) != 0 ||
        mkfifo(worker_path(worker, "out"), 0600) != 0)
        fatal_errno("make %s", worker->dir);
    worker_open_all(worker);
    worker_spawn(worker, argv);
    return worker;
}

struct worker *worker_join(const char *dir)
{
    struct worker *worker = calloc(1, sizeof *worker);
    must(worker);
    snprintf(worker->dir, sizeof worker->dir, "%s", dir);
    worker_open_all(worker);
    while (flock(worker->in, LOCK_EX) != 0)
        must(errno == EINTR);
    return worker;
}

pid_t worker_pid(const struct worker *worker)
{
    return worker->pid;
}

const char *worker_dir(const struct worker *worker)
{
    return worker->dir;
}

void worker_kill(struct worker *worker)
{
    int status = 0;
    if (!worker->pid)
        return;
    kill(worker->pid, SIGKILL);
    if (!spawn_reap(worker->pid, 10000, &status))
        fatal("worker %d survives SIGKILL", (int)worker->pid);
    worker->pid = 0;
}

/* Its input ends, and so does it. */
static void worker_end(struct worker *worker)
{
    int status = 0;
    if (worker->pid && !spawn_reap(worker->pid, 15000, &status))
        worker_kill(worker);
    static const char *const files[] = {"in", "out", "log"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(worker_path(worker, files[i]));
    rmdir(worker->dir);
    if (status != 0)
        fatal("a worker ended with status %d", status);
}

void worker_leave(struct worker *worker)
{
    if (!worker)
        return;
    const char *log = worker->is_mine ? worker_log(worker) : "";
    if (log[0])
        fprintf(stderr, "left in a worker's log: %s\n", log);
    close(worker->in);
    close(worker->out);
    close(worker->log);
    if (worker->is_mine)
        worker_end(worker);
    if (log[0])
        fatal("a worker has logged something");
    free(worker);
}

/* ---- Lines ---- */

/* Of the last so many answers each has a place. */
static struct worker_answer *worker_slot(struct worker *worker, int number)
{
    return &worker->answers[number % ANSWERS];
}

/* Numbers of another process's are told apart by its pid. Lines are shorter than PIPE_BUF, so they
 * stay whole. */
int worker_ask(struct worker *worker, const char *line)
{
    char text[LINE];
    int number = worker->asked++;
    *worker_slot(worker, number) = (struct worker_answer){0};
    int length = snprintf(text, sizeof text, "%d.%d %s\n", (int)getpid(), number, line);
    must(length > 0 && length < LINE);
    if (write(worker->in, text, (size_t)length) != length)
        fatal_errno("write to a worker");
    return number;
}

/* "PID.NUMBER ENDED_NS = VALUE"; a test before this one may have left answers, or half of one. */
static void worker_take(struct worker *worker, const char *line)
{
    int pid = 0, number = 0, at = 0;
    int64_t ended_ns = 0;
    char kind = 0;
    if (sscanf(line, "%d.%d %jd %c %n", &pid, &number, &ended_ns, &kind, &at) != 4 || at == 0 ||
        pid != getpid() || number <= worker->asked - ANSWERS || number >= worker->asked)
        return;
    struct worker_answer *answer = worker_slot(worker, number);
    snprintf(answer->text, sizeof answer->text, "%s", line + at);
    answer->threw = kind == '!';
    answer->ended_ns = ended_ns;
}

static void worker_take_all(struct worker *worker)
{
    char *line = worker->unread, *end;
    while ((end = memchr(line, '\n', worker->unread_length)) != NULL) {
        *end = '\0';
        worker_take(worker, line);
        worker->unread_length -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(worker->unread, line, worker->unread_length);
    must(worker->unread_length < sizeof worker->unread);
}

/* Reads what comes within the time; false when nothing does. */
static bool worker_read(struct worker *worker, int64_t ms)
{
    struct pollfd ready = {.fd = worker->out, .events = POLLIN};
    if (poll(&ready, 1, (int)ms) <= 0)
        return false;
    ssize_t got = read(worker->out, worker->unread + worker->unread_length,
                       sizeof worker->unread - worker->unread_length);
    if (got > 0) {
        worker->unread_length += (size_t)got;
        worker_take_all(worker);
    }
    return true;
}

const struct worker_answer *worker_answer(struct worker *worker, int number, int64_t ms)
{
    struct deadline deadline = deadline_in(ms);
    const struct worker_answer *answer = worker_slot(worker, number);
    while (!answer->ended_ns) {
        int64_t left_ms = deadline_left_ms(deadline);
        if (!worker_read(worker, left_ms) && left_ms == 0)
            break;
    }
    return answer;
}

/* The worker appends, so what was read can be cut off. */
const char *worker_log(struct worker *worker)
{
    ssize_t got = pread(worker->log, worker->log_text, sizeof worker->log_text - 1, 0);
    worker->log_text[got > 0 ? got : 0] = '\0';
    if (got > 0 && ftruncate(worker->log, 0) != 0)
        fatal_errno("empty the log of a worker");
    return worker->log_text;
}
