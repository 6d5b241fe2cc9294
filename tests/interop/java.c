/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The JVM's input, output and log are files of one directory, so that any process can use it. */
#include "java.h"

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

struct java {
    char dir[64];
    pid_t pid;        /* 0: another process's, or killed */
    bool is_mine;     /* this process started it */
    int in, out, log; /* of the directory; `in` is also what tests hold the lock of */
    int asked;        /* numbers given */
    struct java_answer answers[ANSWERS];
    char unread[LINE];
    size_t unread_length;
    char log_text[LOG];
};

static const char *java_build(void)
{
    const char *dir = getenv("HL_INTEROP_BUILD");
    return dir && *dir ? dir : HL_INTEROP_BUILD;
}

const char *java_lacks(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/classes/hirelock/interop/Main.class", java_build());
    if (access(path, R_OK) != 0)
        return "the Java side is not built: script/interop does it";
    return system("command -v java >/dev/null") == 0 ? NULL : "there is no java in PATH";
}

static const char *java_path(const struct java *java, const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", java->dir, name);
    return path;
}

/* ---- Start and end ---- */

/* A pipe that is open for reading and writing has neither an end nor a missing reader. */
static int java_open(const struct java *java, const char *name, int flags)
{
    int fd = open(java_path(java, name), flags | O_CLOEXEC, 0600);
    if (fd < 0)
        fatal_errno("open %s/%s", java->dir, name);
    return fd;
}

static void java_open_all(struct java *java)
{
    java->in = java_open(java, "in", java->is_mine ? O_RDWR : O_WRONLY);
    java->out = java_open(java, "out", O_RDWR | O_NONBLOCK);
    java->log = java_open(java, "log", O_RDWR | O_CREAT);
}

static void java_spawn(struct java *java, const char *class)
{
    char path[1100], in[96], out[96], log[96], name[96];
    snprintf(name, sizeof name, "hirelock.interop.%s", class);
    snprintf(path, sizeof path, "%s/classes:%s/lib/*", java_build(), java_build());
    snprintf(in, sizeof in, "%s/in", java->dir);
    snprintf(out, sizeof out, "%s/out", java->dir);
    snprintf(log, sizeof log, "%s/log", java->dir);
    /* It lives for seconds on a small machine, so it shall start soon rather than run fast. What
     * libraries warn of, and the JVM itself, is in the log. */
    char *argv[] = {"java",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-Xmx256m",
                    "-XX:+DisplayVMOutputToStderr",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                    "-cp",
                    path,
                    name,
                    NULL};
    java->pid =
        spawn_start(&(struct spawn){.argv = argv, .input = in, .output = out, .errors = log});
}

struct java *java_start(const char *class)
{
    struct java *java = calloc(1, sizeof *java);
    must(java);
    java->is_mine = true;
    snprintf(java->dir, sizeof java->dir, "/tmp/hl-java-XXXXXX");
    if (!mkdtemp(java->dir) || mkfifo(java_path(java, "in"), 0600) != 0 ||
        mkfifo(java_path(java, "out"), 0600) != 0)
        fatal_errno("make %s", java->dir);
    java_open_all(java);
    java_spawn(java, class);
    return java;
}

struct java *java_join(const char *dir)
{
    struct java *java = calloc(1, sizeof *java);
    must(java);
    snprintf(java->dir, sizeof java->dir, "%s", dir);
    java_open_all(java);
    while (flock(java->in, LOCK_EX) != 0)
        must(errno == EINTR);
    return java;
}

pid_t java_pid(const struct java *java)
{
    return java->pid;
}

const char *java_dir(const struct java *java)
{
    return java->dir;
}

void java_kill(struct java *java)
{
    int status = 0;
    if (!java->pid)
        return;
    kill(java->pid, SIGKILL);
    if (!spawn_reap(java->pid, 10000, &status))
        fatal("JVM %d survives SIGKILL", (int)java->pid);
    java->pid = 0;
}

/* Its input ends, and so does it. */
static void java_end(struct java *java)
{
    int status = 0;
    if (java->pid && !spawn_reap(java->pid, 15000, &status))
        java_kill(java);
    static const char *const files[] = {"in", "out", "log"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(java_path(java, files[i]));
    rmdir(java->dir);
    if (status != 0)
        fatal("the JVM ended with status %d", status);
}

void java_leave(struct java *java)
{
    if (!java)
        return;
    const char *log = java->is_mine ? java_log(java) : "";
    if (log[0])
        fprintf(stderr, "left in the JVM's log: %s\n", log);
    close(java->in);
    close(java->out);
    close(java->log);
    if (java->is_mine)
        java_end(java);
    if (log[0])
        fatal("the JVM has logged something");
    free(java);
}

/* ---- Lines ---- */

/* Of the last so many answers each has a place. */
static struct java_answer *java_slot(struct java *java, int number)
{
    return &java->answers[number % ANSWERS];
}

/* Numbers of another process's are told apart by its pid. Lines are shorter than PIPE_BUF, so they
 * stay whole. */
int java_ask(struct java *java, const char *line)
{
    char text[LINE];
    int number = java->asked++;
    *java_slot(java, number) = (struct java_answer){0};
    int length = snprintf(text, sizeof text, "%d.%d %s\n", (int)getpid(), number, line);
    must(length > 0 && length < LINE);
    if (write(java->in, text, (size_t)length) != length)
        fatal_errno("write to the JVM");
    return number;
}

/* "PID.NUMBER ENDED_NS = VALUE"; a test before this one may have left answers, or half of one. */
static void java_take(struct java *java, const char *line)
{
    int pid = 0, number = 0, at = 0;
    int64_t ended_ns = 0;
    char kind = 0;
    if (sscanf(line, "%d.%d %jd %c %n", &pid, &number, &ended_ns, &kind, &at) != 4 || at == 0 ||
        pid != getpid() || number <= java->asked - ANSWERS || number >= java->asked)
        return;
    struct java_answer *answer = java_slot(java, number);
    snprintf(answer->text, sizeof answer->text, "%s", line + at);
    answer->threw = kind == '!';
    answer->ended_ns = ended_ns;
}

static void java_take_all(struct java *java)
{
    char *line = java->unread, *end;
    while ((end = memchr(line, '\n', java->unread_length)) != NULL) {
        *end = '\0';
        java_take(java, line);
        java->unread_length -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(java->unread, line, java->unread_length);
    must(java->unread_length < sizeof java->unread);
}

/* Reads what comes within the time; false when nothing does. */
static bool java_read(struct java *java, int64_t ms)
{
    struct pollfd ready = {.fd = java->out, .events = POLLIN};
    if (poll(&ready, 1, (int)ms) <= 0)
        return false;
    ssize_t got = read(java->out, java->unread + java->unread_length,
                       sizeof java->unread - java->unread_length);
    if (got > 0) {
        java->unread_length += (size_t)got;
        java_take_all(java);
    }
    return true;
}

const struct java_answer *java_answer(struct java *java, int number, int64_t ms)
{
    struct deadline deadline = deadline_in(ms);
    const struct java_answer *answer = java_slot(java, number);
    while (!answer->ended_ns) {
        int64_t left_ms = deadline_left_ms(deadline);
        if (!java_read(java, left_ms) && left_ms == 0)
            break;
    }
    return answer;
}

/* The JVM appends, so what was read can be cut off. */
const char *java_log(struct java *java)
{
    ssize_t got = pread(java->log, java->log_text, sizeof java->log_text - 1, 0);
    java->log_text[got > 0 ? got : 0] = '\0';
    if (got > 0 && ftruncate(java->log, 0) != 0)
        fatal_errno("empty the log of the JVM");
    return java->log_text;
}
