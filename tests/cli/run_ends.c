/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock run: signals, killed processes, and locks that are lost. */
#include "run_kit.h"

#include <sys/prctl.h>
#include <unistd.h>

/* Until it is ended, with a grandchild in a session of its own; both have written who they are. */
#define LONG_COMMAND                                                                               \
    "setsid sh -c 'echo $$ > $DIR/far; exec sleep 3600' & "                                        \
    "until [ -s $DIR/far ]; do sleep .02; done; "                                                  \
    "echo $PPID > $DIR/guard; echo $$ > $DIR/near; wait; sleep 3600"

SingleLaw(run_ends, passes_signals_on)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
    static const char *const names[] = {"INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH"};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        char command[256], word[32];
        snprintf(command, sizeof command,
                 "trap 'echo got%s; exit 5' %s; echo > $DIR/begun%zu; while :; do sleep .02; done",
                 names[i], names[i], i);
        pid_t pid = RUN("job", "--", "sh", "-c", command);
        snprintf(word, sizeof word, "begun%zu", i);
        run_await_text(word, "\n");
        kill(pid, signals[i]);
        check_int(run_end(pid), 5);
        snprintf(word, sizeof word, "got%s\n", names[i]);
        check_has(run_text("out"), word);
    }
}

SingleLaw(run_ends, a_wait_is_ended_by_a_signal_with_nothing_held)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "job");

    expect_ok(hl_lock_acquire(lock, ERR));
    for (int signal = SIGINT; signal <= SIGTERM; signal += SIGTERM - SIGINT) {
        pid_t pid = RUN("--verbose", "job", "--", "echo", "never");
        run_await_text("err", "waiting");
        kill(pid, signal);
        check_int(run_end(pid), -signal);
        remove(run_file("err").path);
    }
    expect_ok(hl_lock_release(lock, ERR));
    run_await_free("job");
    check_str(run_text("out"), "");
}

SingleLaw(run_ends, a_signal_ends_a_run_that_still_connects)
{
    redis_server_freeze(server);
    for (int signal = SIGINT; signal <= SIGTERM; signal += SIGTERM - SIGINT) {
        pid_t pid = RUN("job", "--", "echo", "never");
        run_await_child(pid);
        kill(pid, signal);
        check_int(run_end(pid), -signal);
    }
    redis_server_thaw(server);
    check_int(redis_int(server, "EXISTS job"), 0);
    check_str(run_text("out"), "");
}

static bool is_held(void *arg)
{
    (void)arg;
    return redis_int(server, "EXISTS job") == 1;
}

/* The front learns late that the guard is connected: the guard holds nothing before. */
SingleLaw(run_ends, a_signal_leaves_no_lock_when_the_front_was_slow)
{
    redis_server_freeze(server);
    pid_t pid = RUN("job", "--", "sh", "-c", "echo > $DIR/begun; exec sleep 3600");
    run_await_child(pid);
    kill(pid, SIGSTOP);
    run_await_stopped(pid);
    redis_server_thaw(server);
    check(!wait_until(is_held, NULL, 500));
    kill(pid, SIGINT);
    kill(pid, SIGCONT);
    check_int(run_end(pid), -SIGINT);
    check_int(redis_int(server, "EXISTS job"), 0);
    check_str(run_text("begun"), "");
}

SingleLaw(run_ends, stops_and_continues_with_its_command)
{
    pid_t pid = RUN("job", "--", "sh", "-c",
                    "echo $$ > $DIR/near; until [ -e $DIR/end ]; do sleep .02; done");
    pid_t near = run_pid("near");

    kill(near, SIGSTOP);
    run_await_stopped(pid);
    check_int(redis_int(server, "EXISTS job"), 1);
    kill(pid, SIGCONT);
    check_int(RUN_STATUS("other", "--", "touch", run_file("end").path), 0);
    check_int(run_end(pid), 0);
}

SingleLaw(run_ends, goes_on_when_its_stopped_command_is_killed)
{
    pid_t pid = RUN("job", "--", "sh", "-c", "echo $$ > $DIR/near; exec sleep 3600");
    pid_t near = run_pid("near");

    kill(near, SIGSTOP);
    run_await_stopped(pid);
    kill(near, SIGKILL);
    check_int(run_end(pid), 128 + SIGKILL);
    run_await_free("job");
}

/* As cpulimit(1) does. The word that the command has stopped may be old when the front hears it. */
SingleLaw(run_ends, is_not_stopped_when_its_command_is_continued)
{
    pid_t pid = RUN("job", "--", "sh", "-c",
                    "echo $$ > $DIR/near; until [ -e $DIR/end ]; do sleep .02; done; exit 3");
    pid_t near = run_pid("near");

    for (int i = 0; i < 300; i++) {
        kill(near, SIGSTOP);
        deadline_nap();
        kill(near, SIGCONT);
    }
    fclose(fopen(run_file("end").path, "we"));
    check_int(run_end(pid), 3);
}

SingleLaw(run_ends, the_command_and_its_tree_end_with_a_killed_front)
{
    pid_t pid = RUN("job", "--", "sh", "-c", LONG_COMMAND);
    pid_t near = run_pid("near"), far = run_pid("far");

    kill(pid, SIGKILL);
    check_int(run_end(pid), -SIGKILL);
    run_await_gone(near);
    run_await_gone(far);
    run_await_free("job"); /* by the guard, long before the lease is over */
}

SingleLaw(run_ends, the_command_and_its_tree_end_with_a_killed_guard)
{
    pid_t pid = RUN("job", "--", "sh", "-c", LONG_COMMAND);
    pid_t near = run_pid("near"), far = run_pid("far");

    kill(run_pid("guard"), SIGKILL);
    check_int(run_end(pid), 122);
    check(run_is_gone(&near) && run_is_gone(&far));
    check_has(run_text("err"), "was killed");
}

SingleLaw(run_ends, the_command_ends_with_both_killed)
{
    pid_t pid = RUN("job", "--", "sh", "-c", LONG_COMMAND);
    pid_t near = run_pid("near"), far = run_pid("far"), guard = run_pid("guard");

    kill(pid, SIGSTOP); /* so that it cannot end the tree first */
    kill(guard, SIGKILL);
    kill(pid, SIGKILL);
    check_int(run_end(pid), -SIGKILL);
    run_await_gone(near);
    kill(far, SIGKILL); /* nobody is left who could */
}

SingleLaw(run_ends, a_daemon_outlives_its_command_and_the_lock_does_not)
{
    check_int(RUN_STATUS("job", "--", "sh", "-c",
                         "setsid sleep 3600 > /dev/null 2>&1 & echo $! > $DIR/far"),
              0);
    pid_t far = run_pid("far");
    check_int(redis_int(server, "EXISTS job"), 0);
    check(!run_is_gone(&far));
    kill(far, SIGKILL);
}

static char short_lease[32];

/* Short, and long enough that a busy machine does not bring it into jeopardy: that ends a command.
 */
static const char *lease_word(void)
{
    snprintf(short_lease, sizeof short_lease, "%dms", (int)slow_ms(3000));
    return short_lease;
}

SingleLaw(run_ends, a_deleted_lock_ends_the_tree)
{
    pid_t pid = RUN("--lease", lease_word(), "job", "--", "sh", "-c", LONG_COMMAND);
    pid_t near = run_pid("near"), far = run_pid("far");

    redis_do(server, "DEL job");
    check_int(run_end(pid), 122);
    check(run_is_gone(&near) && run_is_gone(&far));
    check_has(run_text("err"), "'job' is lost");
}

SingleLaw(run_ends, a_tree_that_is_stopped_or_ignores_TERM_is_ended)
{
    pid_t pid = RUN("--lease", lease_word(), "--kill-after", "200ms", "job", "--", "sh", "-c",
                    "trap '' TERM; echo $$ > $DIR/near; while :; do sleep .05; done");
    pid_t near = run_pid("near");
    redis_do(server, "DEL job");
    check_int(run_end(pid), 122);
    check(run_is_gone(&near));

    pid = RUN("--lease", lease_word(), "--kill-after", "1h", "job", "--", "sh", "-c",
              "sh -c 'echo $$ > $DIR/far; kill -STOP $$' & wait; wait");
    pid_t far = run_pid("far");
    redis_do(server, "DEL job");
    check_int(run_end(pid), 122); /* by TERM: nobody would wait for the KILL */
    check(run_is_gone(&far));
}

SingleLaw(run_ends, a_lost_lock_is_killed_ignored_or_told)
{
    const char *until_end =
        "echo $$ > $DIR/near; until [ -e $DIR/end ]; do sleep .05; done; exit 6";
    pid_t pid = RUN("--on-lost=kill", "--lease", lease_word(), "job", "--", "sh", "-c",
                    "trap '' TERM; echo $$ > $DIR/first; while :; do sleep .05; done");
    run_pid("first");
    redis_do(server, "DEL job");
    check_int(run_end(pid), 122);

    remove(run_file("err").path);
    pid = RUN("--on-lost=ignore", "--lease", lease_word(), "job", "--", "sh", "-c", until_end);
    run_pid("near");
    redis_do(server, "DEL job");
    run_await_text("err", "is lost");
    fclose(fopen(run_file("end").path, "we"));
    check_int(run_end(pid), 6);

    remove(run_file("near").path);
    remove(run_file("end").path);
    pid = RUN("--on-lost=echo $HIRELOCK_EVENT $HIRELOCK_NAME > $DIR/told", "--lease", lease_word(),
              "job", "--", "sh", "-c", until_end);
    run_pid("near");
    redis_do(server, "DEL job");
    run_await_text("told", "lost job\n");
    fclose(fopen(run_file("end").path, "we"));
    check_int(run_end(pid), 6);
}

/* The limit of processes binds every user but root. */
static pid_t start_as_nobody_if_root(const char *lost, const char *command)
{
    char url[RUN_PATH], dir[RUN_PATH], lost_word[RUN_PATH];
    struct run_file out = run_file("out"), errors = run_file("err");
    const char *words[] = {"setpriv",
                           "--reuid=65534",
                           "--inh-caps=+dac_override",
                           "--ambient-caps=+dac_override",
                           HL_CLI_PATH,
                           "run",
                           lost_word,
                           "--lease",
                           lease_word(),
                           "job",
                           "--",
                           "sh",
                           "-c",
                           command,
                           NULL};
    size_t skipped = geteuid() == 0 ? 0 : 4;

    snprintf(url, sizeof url, "HIRELOCK_URL=%s", redis_server_url(server));
    snprintf(dir, sizeof dir, "DIR=%s", redis_server_dir(server));
    snprintf(lost_word, sizeof lost_word, "--on-lost=%s", lost);
    return spawn_start(&(struct spawn){.argv = (char *const *)words + skipped,
                                       .output = out.path,
                                       .errors = errors.path,
                                       .environment = {url, dir}});
}

SingleLaw(run_ends, a_command_for_a_loss_that_cannot_be_started_is_told)
{
    pid_t pid = start_as_nobody_if_root(
        "true", "limits=$(prlimit --pid $PPID --nproc --output SOFT --noheadings);"
                "prlimit --pid $PPID --nproc=1: && echo yes > $DIR/limited;"
                "until [ -e $DIR/end ]; do sleep .05; done;"
                "prlimit --pid $PPID --nproc=$limits: && exit 6");

    run_await_text("limited", "yes\n");
    redis_do(server, "DEL job");
    run_await_text("err", "the command of --on-lost cannot be started: ");
    fclose(fopen(run_file("end").path, "we"));
    check_int(run_end(pid), 6);
}

SingleLaw(run_ends, a_server_that_stands_still_ends_the_command)
{
    pid_t pid = RUN("--lease", lease_word(), "job", "--", "sh", "-c", LONG_COMMAND);
    pid_t near = run_pid("near"), far = run_pid("far");

    redis_server_freeze(server);
    check_int(run_end(pid), 122);
    check(run_is_gone(&near) && run_is_gone(&far));
    check_has(run_text("err"), "jeopardy");
    redis_server_thaw(server);
}

SingleLaw(run_ends, the_longest_hold_ends_the_command)
{
    check_int(RUN_STATUS("--max-hold", "300ms", "job", "--", "sleep", "3600"), 122);
    check_has(run_text("err"), "max_hold");
}

SingleLaw(run_ends, without_a_fork_the_process_becomes_the_command)
{
    pid_t pid = RUN("-F", "job", "--", "sh", "-c",
                    "echo $$ > $DIR/near; until [ -e $DIR/end ]; do sleep .05; done; exit 8");

    check_int(run_pid("near"), pid);
    check_int(redis_int(server, "EXISTS job"), 1);
    check_int(RUN_STATUS("-n", "-F", "job", "--", "true"), 124);
    fclose(fopen(run_file("end").path, "we"));
    check_int(run_end(pid), 8);
    run_await_free("job");

    pid = RUN("-F", "--lease", lease_word(), "job", "--", "sleep", "3600");
    check(redis_wait_int(server, 1, RUN_LONG_MS, "EXISTS job"));
    redis_do(server, "DEL job");
    check_int(run_end(pid), -SIGTERM);
}

/* The guard of -F has lost its parent, so it becomes a child of this test. */
static pid_t guard_beside(pid_t pid)
{
    char path[64];
    struct deadline deadline = deadline_of_wait(RUN_LONG_MS);
    int guard = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    while (guard == 0 && !deadline_is_over(deadline)) {
        FILE *children = fopen(path, "re");
        int child = 0;
        while (children && fscanf(children, "%d", &child) == 1)
            if (child != pid && child != redis_server_pid(server))
                guard = child;
        if (children)
            fclose(children);
        deadline_nap();
    }
    check(guard > 0);
    return guard;
}

SingleLaw(run_ends, without_a_fork_the_command_outlives_a_killed_guard)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = RUN("-F", "job", "--", "sh", "-c",
                    "echo $$ > $DIR/near; until [ -e $DIR/end ]; do sleep .05; done; exit 8");

    check_int(run_pid("near"), pid);
    pid_t guard = guard_beside(pid);
    kill(guard, SIGKILL);
    check_int(run_end(guard), -SIGKILL);
    check_int(redis_int(server, "EXISTS job"), 1); /* until its lease is over */
    fclose(fopen(run_file("end").path, "we"));
    check_int(run_end(pid), 8);
}

SingleLaw(run_ends, without_a_fork_no_command_begins_with_a_killed_guard)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "job");

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    expect_ok(hl_lock_acquire(lock, ERR));
    pid_t pid = RUN("-F", "--verbose", "job", "--", "echo", "never");
    run_await_text("err", "waiting");
    kill(guard_beside(pid), SIGKILL);
    check_int(run_end(pid), 125);
    check_has(run_text("err"), "is gone");
    check_str(run_text("out"), "");
}

SingleLaw(run_ends, without_a_fork_a_signal_ends_the_wait_with_nothing_held)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "job");

    expect_ok(hl_lock_acquire(lock, ERR));
    pid_t pid = RUN("-F", "--verbose", "job", "--", "echo", "never");
    run_await_text("err", "waiting");
    kill(pid, SIGINT);
    check_int(run_end(pid), -SIGINT);
    expect_ok(hl_lock_release(lock, ERR));
    run_await_free("job");
    check_str(run_text("out"), "");
}
