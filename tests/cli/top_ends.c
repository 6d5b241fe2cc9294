/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock top in trouble and at its end: servers that die, the terminal that is to be as it was,
 * very many locks, and words that it refuses. */

#include <fcntl.h>
#include <termios.h>

#include "cli/top_kit.h"
#include "support/topologies.h"

enum { TOP_FIRST = 3 };

static void add_lock(const char *name)
{
    redis_do(server, "HSET %s " JAVA ":1 1", name);
    redis_do(server, "PEXPIRE %s 600000", name);
}

TopSingleLaw(top_ends, shows_that_the_server_is_away_and_goes_on_when_it_is_back)
{
    add_lock("stock");
    top_start("");
    top_await_line(TOP_FIRST, "stock");
    top_await_line(0, "connected");
    redis_server_kill(server);
    top_await_line(0, "away since ");
    top_press("Enter"); /* keys are answered, and questions are not */
    top_await("q back");
    top_press("q");
    top_await("WAITERS");
    redis_server_wipe(server);
    redis_server_restart(server);
    add_lock("shelf");
    top_await_line(0, "connected");
    top_await("shelf");
    top_await_gone("stock");
}

/* Masters that go on without one of them. */
static void cluster_up_alone(void)
{
    cluster_up_with(&(struct cluster_options){.without_replicas = true,
                                              .config = "cluster-require-full-coverage no"});
}

Test(top_ends, goes_on_at_the_other_masters_while_one_is_away, .init = cluster_up_alone,
     .fini = top_down)
{
    static const char *names[3];
    char words[300];

    for (int i = 0; i < 3; i++) {
        names[i] = cluster_name_at(cluster_node(cluster, i), "stock");
        redis_do(cluster_node(cluster, i), "HSET %s " JAVA ":1 1", names[i]);
    }
    snprintf(words, sizeof words, "--url '%s'", cluster_url(cluster));
    top_start(words);
    top_await_line(1, "3 locks");
    redis_server_kill(cluster_node(cluster, 2));
    top_await_line(0, "away since ");
    redis_do(cluster_node(cluster, 1), "CLIENT KILL TYPE normal SKIPME yes");
    redis_do(cluster_node(cluster, 0), "DEL %s", names[0]);
    redis_do(cluster_node(cluster, 1), "DEL %s", names[1]);
    top_await_line(1, "1 lock"); /* and the second was seen by a new connection */
    check_has(top_line(0), "away since ");
    redis_server_restart(cluster_node(cluster, 2));
    top_await_line(0, "connected");
}

TopSingleLaw(top_ends, quits_while_the_server_is_away_or_stands_still)
{
    add_lock("stock");
    top_start("");
    top_await_line(TOP_FIRST, "stock");
    redis_server_freeze(server);
    top_press("u", "q");
    top_await("status 0");
    redis_server_thaw(server);
    top_type("clear; $RUN top; echo e''nd $?");
    top_press("Enter");
    top_await_line(TOP_FIRST, "stock");
    redis_server_kill(server);
    top_await_line(0, "away since ");
    top_press("q");
    top_await("end 0");
}

TopSingleLaw(top_ends, shows_all_that_is_said_of_a_server_that_stands_still)
{
    setenv("HIRELOCK_REQUEST_TIMEOUT", "1h", 1); /* the connection is not given up */
    add_lock("stock");
    top_start("");
    unsetenv("HIRELOCK_REQUEST_TIMEOUT");
    top_resize("200", "24");
    top_await_line(TOP_FIRST, "stock");
    redis_server_freeze(server);
    top_await_line(0, "no answer from ");
    redis_server_thaw(server);
    top_await_line(0, "connected");
}

TopSingleLaw(top_ends, shows_that_it_has_no_login_any_more)
{
    add_lock("stock");
    top_start("");
    top_await_line(TOP_FIRST, "stock");
    redis_do(server, "CONFIG SET requirepass secret");
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    top_await_line(0, "NOAUTH");
    redis_do(server, "CONFIG SET requirepass %b", "", (size_t)0);
    top_await_line(0, "connected");
}

TopSingleLaw(top_ends, shows_that_it_may_not_look)
{
    add_lock("stock");
    redis_do(server, "ACL SETUSER default -scan");
    top_start("");
    top_await_line(0, "NOPERM");
    redis_do(server, "ACL SETUSER default +scan -dbsize");
    top_await_line(TOP_FIRST, "stock");
    top_await_line(1, "1 lock, ");
    top_await_line(0, "connected");
}

/* Types a command of the shell and waits for what it says. */
static void expect_said_by_shell(const char *command, const char *text)
{
    top_type(command);
    top_press("Enter");
    top_await(text);
}

/* The terminal's settings are as before, and the screen is the shell's. */
static void expect_restored(void)
{
    top_await_gone("WAITERS");
    TMUX("display-message", "-p", "#{alternate_on} #{cursor_flag}");
    check_has(top_screen, "0 1");
    expect_said_by_shell("stty -a >$DIR/after; cmp $DIR/before $DIR/after && echo a''s before",
                         "as before");
    expect_said_by_shell("clear; echo cl''eared", "cleared");
}

/* It has ended with this status of the shell's, and the terminal is as it was. */
static void expect_ended(const char *status)
{
    top_await_gone("WAITERS");
    expect_said_by_shell("echo st''atus $?", status);
    expect_restored();
}

/* What stands behind this word in a file of /proc; "" when the process is gone. */
static const char *proc_line(pid_t pid, const char *name, const char *word)
{
    static char line[256];
    char path[64];
    size_t length = strlen(word);

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    bool is_found = false;
    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = strncmp(line, word, length) == 0;
    if (file)
        fclose(file);
    return is_found ? line + length : "";
}

static bool is_gone(void *arg)
{
    const char *state = proc_line(*(const pid_t *)arg, "status", "State:");

    return !state[0] || strchr(state, 'Z');
}

static char pid_path[300];

/* A shell has written a whole line. */
static bool has_pid(void *arg)
{
    char line[32] = "";
    FILE *file = fopen(pid_path, "re");

    if (file && fgets(line, sizeof line, file) && strchr(line, '\n'))
        *(pid_t *)arg = (pid_t)strtol(line, NULL, 10);
    if (file)
        fclose(file);
    return *(pid_t *)arg > 0;
}

/* In the shell's foreground. Returns its number. */
static pid_t start_again(void)
{
    pid_t pid = 0;

    snprintf(pid_path, sizeof pid_path, "%s/pid", redis_server_dir(server));
    unlink(pid_path);
    top_type("sh -c 'echo $$ >$DIR/pid; exec $RUN top'");
    top_press("Enter");
    check(wait_until(has_pid, &pid, TOP_LONG_MS));
    top_await("WAITERS");
    return pid;
}

TopLaw(top_ends, leaves_the_terminal_as_it_was_on_each_way_out)
{
    add_lock("stock");
    top_open("80", "24");
    top_type("stty -a >$DIR/before");
    top_press("Enter");
    start_again();
    TMUX("display-message", "-p", "alternate #{alternate_on}");
    check_has(top_screen, "alternate 1");
    top_press("q");
    expect_ended("status 0");
    start_again();
    top_press("Escape");
    expect_ended("status 0");
    start_again();
    top_press("C-c");
    expect_ended("status 130");
    kill(start_again(), SIGTERM);
    expect_ended("status 143");
    kill(start_again(), SIGHUP);
    expect_ended("status 129");
}

/* As after control-S, or at the end of a connection that stands still. */
TopLaw(top_ends, is_ended_by_a_signal_though_its_terminal_takes_nothing)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    char status[32];

#ifdef HL_TEST_RUNNER
    skip("ThreadSanitizer runs no handler in a thread before its write() is over");
#endif
    add_lock("stock");
    top_open("80", "24");
    TMUX("display-message", "-p", "#{pane_tty}");
    top_screen[strcspn(top_screen, "\n")] = '\0';
    int terminal = open(top_screen, O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(terminal >= 0);
    for (int i = 0; i < 3; i++) {
        pid_t pid = start_again();
        check_int(tcflow(terminal, TCOOFF), 0);
        kill(pid, signals[i]);
        check_msg(wait_until(is_gone, &pid, TOP_LONG_MS), "signal %d", signals[i]);
        check_int(tcflow(terminal, TCOON), 0);
        snprintf(status, sizeof status, "status %d", 128 + signals[i]);
        expect_said_by_shell("echo st''atus $?", status);
    }
    close(terminal);
}

TopLaw(top_ends, is_stopped_and_goes_on_in_its_terminal)
{
    add_lock("stock");
    top_open("80", "24");
    top_type("stty -a >$DIR/before");
    top_press("Enter");
    pid_t pid = start_again();
    top_press("C-z");
    top_await("Stopped");
    expect_restored();
    top_type("fg");
    top_press("Enter");
    top_await_line(TOP_FIRST, "stock");
    kill(pid, SIGSTOP); /* without a word before */
    top_await("Stopped");
    top_type("fg");
    top_press("Enter");
    top_await_line(TOP_FIRST, "stock");
    top_press("q");
    expect_ended("status 0");
}

TopLaw(top_ends, ends_when_its_terminal_is_gone)
{
    add_lock("stock");
    top_open("80", "24");
    pid_t pid = start_again();
    TMUX("kill-pane");
    check(wait_until(is_gone, &pid, TOP_LONG_MS));
}

#define MANY_LOCKS                                                                                 \
    "for i = 1, ARGV[1] do redis.call('HSET', 'order:' .. i, '" JAVA ":' .. i, 1) "                \
    "redis.call('PEXPIRE', 'order:' .. i, 6000000) end return 1"

static long resident_kb(pid_t pid)
{
    return strtol(proc_line(pid, "status", "VmHWM:"), NULL, 10);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

/* Some 30 MB by now: a few hundred bytes for each lock. A sanitizer, which is slow and takes memory
 * of its own, gets a tenth of them. */
TopSingleLaw(top_ends, shows_a_hundred_thousand_locks)
{
    const char *all = IS_SANITIZED ? "10000 locks of 10000 keys" : "100000 locks of 100000 keys";

    check_int(redis_int(server, "EVAL %s 0 %d", MANY_LOCKS, IS_SANITIZED ? 10000 : 100000), 1);
    top_start("--sort name");
    top_await("order:"); /* the first rows are there, and keys are answered */
    top_press("?");
    top_await("one lock up, down");
    top_press("q");
    top_await_line(1, all);
    top_await_line(TOP_FIRST, "order:1 ");
    top_press("/");
    top_type("order:999?");
    top_await_line(1, "10 of 10000");
    top_press("Escape", "6");
    redis_do(server, "ZADD hirelock_queue:{order:5432} 1 a");
    top_await_line(TOP_FIRST, "order:5432"); /* a survey finds it */
    top_press("q");
    top_await("status 0");
    pid_t pid = start_again();
    top_await_line(1, "10000"); /* and more: the queue is a key, too */
    top_await_line(1, "0 locks of ");
    top_await_gone("looking ...");
    check_msg(IS_SANITIZED || resident_kb(pid) < 60000, "%ld kB", resident_kb(pid));
}

TopLaw(top_ends, says_that_there_is_no_lock)
{
    top_start("");
    top_await_line(1, "0 locks of 0 keys, 0 waited for");
    top_press("j", "k", "Enter", "u", "NPage", "End", "r", "q");
    top_await("status 0");
}

TopLaw(top_ends, has_colors_only_where_they_are_wanted)
{
    add_lock("stock");
    redis_do(server, "ZADD hirelock_queue:{stock} 1 a");
    add_lock("shelf");
    top_start("");
    top_await_line(TOP_FIRST + 1, "shelf");
    top_press("j");
    top_await_styled("\x1b[33m", true, true);
    top_press("q");
    top_await("status 0");
    top_type("clear; NO_COLOR=1 $RUN top");
    top_press("Enter");
    top_await_line(TOP_FIRST, "stock");
    top_press("j");
    top_look(true);
    check(strstr(top_screen, "\x1b[1m") != NULL);
    check(strstr(top_screen, "\x1b[33m") == NULL && strstr(top_screen, "\x1b[36m") == NULL);
}

TopLaw(top_ends, without_a_terminal_names_what_prints_the_locks)
{
    const struct said *said = RUN("top");

    expect_said(said, 125);
    check_has(said->err, "standard output is no terminal; hirelock list prints the locks");
    check_str(said->out, "");
    top_open("80", "24");
    top_type("$RUN top </dev/null");
    top_press("Enter");
    top_await("standard input is no terminal");
    top_type("clear; TERM=none $RUN top; echo st''atus $?");
    top_press("Enter");
    top_await("the terminal 'none' is not known here");
    top_await("status 125");
}

TopLaw(top_ends, refuses_words_that_it_does_not_know)
{
    const struct said *said = RUN("top", "--sort", "color");

    expect_said(said, 125);
    check_has(said->err, "'color' is no column: name, kind, holder, held, lease, waiters, longest");
    said = RUN("top", "--interval", "1ms");
    expect_said(said, 125);
    check_has(said->err, "no time from 100ms on");
    expect_said(RUN("top", "a", "b"), 125);
}

TopSingleLaw(top_ends, says_that_there_is_no_server)
{
    top_open("80", "24");
    redis_server_kill(server);
    top_type("$RUN top; echo st''atus $?");
    top_press("Enter");
    top_await("status 123");
    top_await("hirelock top: ");
}

TopLaw(top_ends, helps)
{
    const struct said *said = RUN("top", "--help");

    expect_said(said, 0);
    check_msg(said_lines(said->out) <= 40, "%d lines", said_lines(said->out));
    const char *first = strstr(said->out, "\n  hirelock ");
    check(first && strstr(first + 1, "\n  hirelock "));
}
