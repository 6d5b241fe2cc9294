/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Misspelt words of the command line: what was meant is named, and nothing is done. */
#include "cli/said.h"

static const char *const commands[] = {"acl",      "bench",   "deadlocks", "doctor",
                                       "exporter", "inspect", "list",      "run",
                                       "top",      "unlock",  "wait",      "watch"};

SingleLaw(words, that_are_no_command_and_no_option_get_a_suggestion)
{
    const struct said *said = RUN("lsit");
    char wanted[100];

    expect_said(said, 125);
    check_str(said->err, "hirelock: 'lsit' is no command; did you mean 'list'?\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        said = RUN(commands[i], "--urll=redis://nowhere", "job");
        snprintf(wanted, sizeof wanted,
                 "hirelock %s: there is no option --urll; did you mean --url?\n", commands[i]);
        expect_said(said, 125);
        check_msg(strncmp(said->err, wanted, strlen(wanted)) == 0, "%s: %s", commands[i],
                  said->err);
        check_has(said->err, "--help");
        check_str(said->out, "");
    }
}

SingleLaw(words, that_mean_nothing_known_are_refused)
{
    expect_said(RUN("frobnicate"), 125);
    check_has(RUN("frobnicate")->err, "hirelock --help lists them");
    expect_said(RUN("list", "--frobnicate"), 125);
    check_has(RUN("list", "--frobnicate")->err, "hirelock list: unrecognized option");
}

/* getopt(3) completes an option; the argument of an option is no option. */
SingleLaw(words, that_only_look_misspelt_are_taken)
{
    expect_said(RUN("list", "--js"), 0);
    expect_said(RUN("list", "-p", "--jsn", "--json"), 0);
    expect_said(RUN("list", "--prefix", "--jsn", "--json"), 0);
    expect_said(RUN("run", "job", "--", "true", "--fnce"), 0);
}

/* As options of the client, in the environment and in the URL (docs/options.md). */
SingleLaw(words, of_a_prefix_hold_for_each_command)
{
    static const char *const looks[] = {"inspect", "list", "unlock"};
    char url[700];

    snprintf(url, sizeof url, "%s?name_prefix=app:", redis_server_url(server));
    redis_do(server, "HSET app:job " JAVA ":7 1");
    redis_do(server, "PEXPIRE app:job 600000");
    expect_said(RUN("wait", "-u", url, "-w", "50ms", "job"), 124);
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        const char *const asks[] = {looks[i], "--json", "-u", url, "job", NULL};
        const char *const takes[] = {looks[i], "--yes", "-u", url, "job", NULL};
        const struct said *said =
            said_end(said_start(NULL, strcmp(looks[i], "unlock") == 0 ? takes : asks));
        expect_said(said, 0);
        check_has(said->out, strcmp(looks[i], "unlock") == 0 ? "job" : "\"name\":\"job\"");
    }
    check_int(redis_int(server, "EXISTS app:job"), 0);
}
