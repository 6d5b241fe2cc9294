/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock bench: each part is there, counts something, and leaves nothing behind. */
#include "cli/said.h"

static double figure(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    check_msg(at, "no %s in %s", key, line);
    return strtod(at + strlen(key), NULL);
}

Law(bench, measures_its_five_parts_and_leaves_nothing_behind)
{
    const struct said *said = RUN("bench", "--time", "5", "--threads", "3", "--json");
    const char *line = said->out;

    expect_said(said, 0);
    check_int(said_lines(said->out), 5);
    for (int i = 0; i < 5; i++, line = strchr(line, '\n') + 1) {
        check(figure(line, "\"per_second\":") > 0);
        check(figure(line, "\"p50_us\":") > 0);
        check(figure(line, "\"p50_us\":") <= figure(line, "\"p99_us\":"));
        check(figure(line, "\"p99_us\":") <= figure(line, "\"slowest_us\":"));
        check_int((int)figure(line, "\"threads\":"), i < 2 ? 1 : i == 4 ? 2 : 3);
    }
    check_str(RUN("list", "--json", "*bench*")->out, "");
}

Law(bench, prints_a_table)
{
    const struct said *said = RUN("bench", "--time", "1");

    expect_said(said, 0);
    check_int(said_lines(said->out), 6);
    check_has(said->out, "hand-over between two clients");
    check_str(said->err, "");
}

Law(bench, refuses_what_it_does_not_understand)
{
    check_has(RUN("bench", "stock")->err, "only options");
    check_has(RUN("bench", "--threads", "0")->err, "no number from 1");
    check_has(RUN("bench", "--time", "1ms")->err, "a second or more");
    expect_help_fits("bench");
}
