/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock run: statuses, options, kinds of locks. */
#include "run_kit.h"

SingleLaw(run, ends_with_the_status_of_its_command)
{
    check_int(RUN_STATUS("job", "--", "true"), 0);
    check_int(RUN_STATUS("job", "--", "sh", "-c", "exit 7"), 7);
    check_int(RUN_STATUS("job", "--", "sh", "-c", "kill -9 $$"), 128 + SIGKILL);
    check_int(RUN_STATUS("job", "--", "sh", "-c", "kill -TERM $$"), 128 + SIGTERM);
    check_int(redis_int(server, "EXISTS job"), 0);
}

SingleLaw(run, has_statuses_of_its_own_for_a_command_that_cannot_run)
{
    check_int(RUN_STATUS("job", "--", "/no/such/program"), 127);
    check_has(run_text("err"), "/no/such/program");
    check_int(RUN_STATUS("job", "--", "/etc/passwd"), 126);
    check_int(redis_int(server, "EXISTS job"), 0);
}

SingleLaw(run, holds_the_lock_while_the_command_runs_and_shows_its_name)
{
    pid_t pid = RUN("job", "--", "sh", "-c",
                    "echo > $DIR/begun; until [ -e $DIR/end ]; do sleep .05; done");
    char brief[16]; /* but long enough for the server's answer */

    snprintf(brief, sizeof brief, "%dms", (int)slow_ms(1000));
    run_await_text("begun", "\n");
    check_int(redis_int(server, "EXISTS job"), 1);
    check_int(RUN_STATUS("-n", "job", "--", "true"), 124);
    check_str(run_text("err"), ""); /* as flock(1) */
    check_int(RUN_STATUS("-w", brief, "job", "--", "true"), 124);
    check_int(RUN_STATUS("-n", "-E", "9", "job", "--", "true"), 9);
    check_int(RUN_STATUS("-w", brief, "--verbose", "job", "--", "true"), 124);
    check_has(run_text("err"), "thread 'sh'");
    check_int(RUN_STATUS("-n", "other", "--", "touch", run_file("end").path), 0);
    check_int(run_end(pid), 0);
    check_int(redis_int(server, "EXISTS job"), 0);
}

SingleLaw(run, waits_until_the_lock_is_free_and_tells_how_long)
{
    pid_t pid = RUN("job", "--", "sh", "-c",
                    "echo > $DIR/begun; until [ -e $DIR/end ]; do sleep .05; done");

    run_await_text("begun", "\n");
    pid_t waiter = RUN("--verbose", "job", "--", "echo", "mine");
    run_await_text("err", "waiting");
    check_str(run_text("out"), "");
    check_int(RUN_STATUS("other", "--", "touch", run_file("end").path), 0);
    check_int(run_end(pid), 0);
    check_int(run_end(waiter), 0);
    check_str(run_text("out"), "mine\n");
    check_has(run_text("err"), "held after");
}

SingleLaw(run, keeps_stdin_stdout_and_stderr)
{
    FILE *file = fopen(run_file("in").path, "we");

    fputs("hello\n", file);
    fclose(file);
    check_int(
        run_end(run_start(run_file("in").path, "job", "--", "sh", "-c", "cat; echo bad >&2", NULL)),
        0);
    check_str(run_text("out"), "hello\n");
    check_str(run_text("err"), "bad\n");
}

/* ls(1) has the descriptor 3 itself. */
SingleLaw(run, gives_no_descriptor_of_its_own_to_the_command)
{
    check_int(RUN_STATUS("job", "--", "ls", "/proc/self/fd"), 0);
    check_str(run_text("out"), "0\n1\n2\n3\n");
    remove(run_file("out").path);
    check_int(RUN_STATUS("-F", "job", "--", "ls", "/proc/self/fd"), 0);
    check_str(run_text("out"), "0\n1\n2\n3\n");
}

/* The words of a shell that starts `hirelock run job --` as $RUN. */
static const char *shell_words(const char *text)
{
    static char words[1024];

    snprintf(words, sizeof words,
             "RUN='%s run --verbose job --'; HERE='%s run -F --verbose other --'; %s", HL_CLI_PATH,
             HL_CLI_PATH, text);
    return words;
}

SingleLaw(run, leaves_mask_and_ignored_signals_of_the_command_as_they_were)
{
    const char *text =
        "show='grep -E ^Sig(Blk|Ign) /proc/self/status'; "
        "as='env --ignore-signal=CHLD --ignore-signal=USR1 --ignore-signal=PIPE "
        "--block-signal=USR2 --block-signal=CHLD'; "
        "$as $show > $DIR/without; $as $RUN $show > $DIR/with; $as $HERE $show > $DIR/here; "
        "cmp $DIR/without $DIR/with && cmp $DIR/without $DIR/here";

    check_int(RUN_STATUS("outer", "--", "sh", "-c", shell_words(text)), 0);
}

SingleLaw(run, runs_with_closed_stdin_stdout_and_stderr)
{
    static const char *const closed[] = {"<&- >&- 2>&-", ">&- 2>&-", "2>&-"};
    const char *show = "ls /proc/$$/fd > $DIR/fds; exit 7";
    char text[512];

    for (int i = 0; i < 6; i++) {
        snprintf(text, sizeof text, "$%s sh -c '%s' %s", i % 2 ? "HERE" : "RUN", show,
                 closed[i / 2]);
        check_int(RUN_STATUS("outer", "--", "sh", "-c", shell_words(text)), 7);
        check(!strstr(run_text("fds"), "2\n"));
    }
}

SingleLaw(run, gives_a_text_to_the_shell)
{
    check_int(RUN_STATUS("-c", "echo $HIRELOCK_NAME; exit 3", "job"), 3);
    check_str(run_text("out"), "job\n");
}

SingleLaw(run, takes_all_names_or_none)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "b");

    check_int(RUN_STATUS("a", "b", "c", "--", "sh", "-c", "echo $HIRELOCK_NAME"), 0);
    check_str(run_text("out"), "a,b,c\n");
    expect_ok(hl_lock_acquire(lock, ERR));
    check_int(RUN_STATUS("-n", "a", "b", "c", "--", "true"), 124);
    check_int(redis_int(server, "EXISTS a c"), 0);
}

SingleLaw(run, has_a_token_that_rises)
{
    check_int(RUN_STATUS("--fence", "job", "--", "sh", "-c", "echo $HIRELOCK_TOKEN"), 0);
    check_int(RUN_STATUS("--fence", "-F", "job", "--", "sh", "-c", "echo $HIRELOCK_TOKEN"), 0);
    run_await_free("job");
    long first = 0, second = 0;
    check_int(sscanf(run_text("out"), "%ld %ld", &first, &second), 2);
    check(first > 0 && second > first);
}

SingleLaw(run, lets_so_many_run_as_there_are_permits)
{
    const char *command = "echo >> $DIR/begun; until [ -e $DIR/end ]; do sleep .05; done";
    pid_t one = RUN("--permits", "2", "pool", "--", "sh", "-c", command);
    pid_t two = RUN("--permits", "2", "pool", "--", "sh", "-c", command);

    run_await_text("begun", "\n\n");
    check_int(RUN_STATUS("-n", "--permits", "2", "pool", "--", "true"), 124);
    check_int(RUN_STATUS("other", "--", "touch", run_file("end").path), 0);
    check_int(run_end(one), 0);
    check_int(run_end(two), 0);
    check_int(RUN_STATUS("-n", "--permits", "2", "pool", "--", "true"), 0);
}

SingleLaw(run, lets_readers_read_together_and_writers_write_alone)
{
    const char *command = "echo >> $DIR/begun; until [ -e $DIR/end ]; do sleep .05; done";
    pid_t reader = RUN("-s", "job", "--", "sh", "-c", command);

    run_await_text("begun", "\n");
    check_int(RUN_STATUS("-n", "-s", "job", "--", "true"), 0);
    check_int(RUN_STATUS("-n", "-x", "job", "--", "true"), 124);
    check_int(RUN_STATUS("other", "--", "touch", run_file("end").path), 0);
    check_int(run_end(reader), 0);
    check_int(RUN_STATUS("-n", "-x", "job", "--", "true"), 0);
    check_int(RUN_STATUS("-n", "--fair", "turns", "--", "true"), 0);
}

SingleLaw(run, keeps_the_lock_for_the_shortest_hold)
{
    check_int(RUN_STATUS("--min-hold", "1h", "nightly", "--", "true"), 0);
    check_int(RUN_STATUS("-n", "--min-hold", "1h", "nightly", "--", "true"), 124);
    check(redis_int(server, "PTTL nightly") > 1800000);
}

SingleLaw(run, refuses_words_that_do_not_go_together)
{
    static const struct {
        const char *words[6], *why;
    } bad[] = {
        {{"job", "true"}, "which COMMAND?"},
        {{"--", "true"}, "which NAME?"},
        {{"-c", "true", "job", "--", "true"}, "-c or -- COMMAND: one of them"},
        {{"-s", "-x", "job", "--", "true"}, "one of -s, -x, --fair and --fence"},
        {{"--fence", "a", "b", "--", "true"}, "--fence is for one NAME"},
        {{"--permits", "2", "--fair", "job", "-c", "true"}, "--permits is no lock"},
        {{"--permits", "0", "job", "--", "true"}, "'0' is no number from 1"},
        {{"-w", "soon", "job", "--", "true"}, "'soon' is no time"},
        {{"-E", "256", "job", "--", "true"}, "'256' is no number from 0 to 255"},
        {{"-n", "--no-server=wait", "job", "--", "true"}, "-n does not wait"},
        {{"--no-server=maybe", "job", "--", "true"}, "fail, wait or run, please"},
        {{"--lease", "0", "job", "--", "true"}, "'0': longer than that"},
        {{"--fnce", "job", "--", "true"}, "did you mean --fence?"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *const *words = bad[i].words;
        check_int(RUN_STATUS(words[0], words[1], words[2], words[3], words[4], words[5]), 125);
        check_has(run_text("err"), bad[i].why);
        remove(run_file("err").path);
    }
    check_int(redis_int(server, "DBSIZE"), 0);
}

SingleLaw(run, has_a_help_that_fits_a_screen)
{
    int lines = 0;

    check_int(RUN_STATUS("--help"), 0);
    for (const char *line = run_text("out"); *line; lines++) {
        check_msg(strcspn(line, "\n") <= 80, "too long: %.90s", line);
        line += strcspn(line, "\n") + 1;
    }
    check(lines > 20 && lines <= 40);
}

SingleLaw(run, knows_what_to_do_without_a_server)
{
    check_int(run_end(run_start_at("unix:///no/such", "job", "--", "echo", "no", NULL)), 123);
    check_str(run_text("out"), "");
    check_int(run_end(run_start_at("unix:///no/such", "--no-server=wait", "-w", "0.2", "job", "--",
                                   "echo", "no", NULL)),
              123);
    check_str(run_text("out"), "");
    check_int(run_end(run_start_at("unix:///no/such", "--no-server=run", "job", "--", "sh", "-c",
                                   "echo alone; exit 4", NULL)),
              4);
    check_str(run_text("out"), "alone\n");
    check_has(run_text("err"), "NO LOCK IS HELD");
}

SingleLaw(run, knows_what_to_do_when_the_server_goes_away_during_the_wait)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "job");

    expect_ok(hl_lock_acquire(lock, ERR));
    pid_t alone =
        RUN("--no-server=run", "--verbose", "job", "--", "sh", "-c", "echo alone; exit 4");
    run_await_text("err", "waiting");
    remove(run_file("err").path);
    pid_t other = RUN("--verbose", "job", "--", "echo", "never");
    run_await_text("err", "waiting");
    redis_server_kill(server);
    check_int(run_end(alone), 4);
    check_int(run_end(other), 123);
    check_str(run_text("out"), "alone\n");
    redis_server_restart(server);
}

SingleLaw(run, waits_for_a_server_that_comes)
{
    redis_server_kill(server);
    pid_t pid = RUN("--no-server=wait", "job", "--", "echo", "late");
    redis_server_restart(server);
    check_int(run_end(pid), 0);
    check_str(run_text("out"), "late\n");
}

SingleLaw(run, shows_no_url_on_a_command_line)
{
    char url[RUN_PATH];

    snprintf(url, sizeof url, "%s", redis_server_url(server));
    check_int(
        RUN_STATUS("--url", url, "job", "--", "sh", "-c", "cat /proc/$PPID/cmdline | tr '\\0' ' '"),
        0);
    check(!strstr(run_text("out"), "unix://"));
    check_has(run_text("out"), "xxxx");
}
