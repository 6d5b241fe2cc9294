/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * lock_bench --port N [--quick] [--json FILE] [--only SCENARIO]: measures the lock over TCP
 * loopback, beside the raw commands that it replaces. The server must be a private one on this
 * machine: its keys are deleted, and it is pinned to cores. script/bench starts one.
 */
#include "must.h"
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct scenario {
    const char *name;
    void (*run)(struct bench *bench);
} scenarios[] = {
    {"pair", scenario_pair},       {"tls", scenario_tls},           {"kinds", scenario_kinds},
    {"local", scenario_local},     {"threads", scenario_threads},   {"pass", scenario_pass},
    {"waiters", scenario_waiters}, {"holds", scenario_holds},       {"killed", scenario_killed},
    {"unheard", scenario_unheard}, {"handover", scenario_handover}, {"readers", scenario_readers},
    {"fair", scenario_fair},       {"bytes", scenario_bytes},       {"cluster", scenario_cluster},
    {"redlock", scenario_redlock},
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

/* A scenario that takes longer hangs: SIGALRM ends the program, and that its processes. */
enum { LONGEST_S = 600 };

struct choice {
    int port;
    bool is_quick;
    const char *json, *only;
};

static void choice_refuse(const char *program)
{
    fprintf(stderr,
            "usage: %s --port N [--quick] [--json FILE] [--only SCENARIO]\nscenarios:", program);
    for (size_t i = 0; i < SCENARIOS; i++)
        fprintf(stderr, " %s", scenarios[i].name);
    fputc('\n', stderr);
    exit(2); /* NOLINT(concurrency-mt-unsafe): there is one thread yet */
}

static bool choice_is_known(const struct choice *choice)
{
    for (size_t i = 0; i < SCENARIOS; i++)
        if (!choice->only || strcmp(choice->only, scenarios[i].name) == 0)
            return choice->port > 0;
    return false;
}

static struct choice choice_read(int argc, char **argv)
{
    struct choice choice = {0};

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            choice.is_quick = true;
            continue;
        }
        if (value && strcmp(argv[i], "--port") == 0)
            choice.port = (int)strtol(value, NULL, 10);
        else if (value && strcmp(argv[i], "--json") == 0)
            choice.json = value;
        else if (value && strcmp(argv[i], "--only") == 0)
            choice.only = value;
        else
            choice_refuse(argv[0]);
        i++;
    }
    if (!choice_is_known(&choice))
        choice_refuse(argv[0]);
    return choice;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct choice choice = choice_read(argc, argv);

    bench.is_quick = choice.is_quick;
    server_open(&bench.server, choice.port);
    report_machine(&bench.report, bench.server.version, argv);
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (choice.only && strcmp(choice.only, scenarios[i].name) != 0)
            continue;
        server_flush(&bench.server);
        alarm(LONGEST_S);
        scenarios[i].run(&bench);
    }
    server_flush(&bench.server);
    server_close(&bench.server);
    printf("\n%zu figures, %zu targets missed\n", bench.report.count, bench.report.missed);
    if (choice.json)
        report_write_json(&bench.report, choice.json);
    return 0;
}
