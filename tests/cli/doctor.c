/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock doctor: what it finds at servers with known faults, and its status. */

#include "cli/checks.h"
#include "cli/said.h"

static const char *line_of(const struct said *said, const char *check)
{
    static char line[600];
    char word[40];

    snprintf(word, sizeof word, " %-12s ", check); /* as the line has it */
    const char *at = strstr(said->out, word);
    check_msg(at, "nothing of %s:\n%s", check, said->out);
    while (at > said->out && at[-1] != '\n')
        at--;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

static void expect_line(const struct said *said, const char *check, const char *state,
                        const char *words)
{
    const char *line = line_of(said, check);

    check_has(line, state);
    check_has(line, words);
}

SingleLaw(doctor, finds_no_problem_at_a_server_that_keeps_locks)
{
    redis_do(server, "CONFIG SET appendonly yes");
    redis_do(server, "CONFIG SET appendfsync always");
    const struct said *said = RUN("doctor");
    expect_said(said, 0);
    check_has(said->out, "0 problems, "); /* a busy machine's answers may be late: a warning */
    expect_line(said, "persistence", "ok", "outlive a restart");
    expect_line(said, "eviction", "ok", "noeviction");
    expect_line(said, "lock", "ok", "acquired and released");
    check_int(redis_int(server, "DBSIZE"), 0);
}

SingleLaw(doctor, names_a_policy_that_deletes_locks)
{
    redis_do(server, "CONFIG SET maxmemory 100mb");
    redis_do(server, "CONFIG SET maxmemory-policy allkeys-lru");
    const struct said *said = RUN("doctor");
    expect_said(said, 1);
    expect_line(said, "eviction", "PROBLEM", "allkeys-lru");
    check_has(said->out, "-> CONFIG SET maxmemory-policy noeviction");
    check_has(said->out, "1 problem, ");
}

SingleLaw(doctor, tells_that_a_restart_loses_locks)
{
    redis_do(server, "CONFIG SET appendonly no");
    const struct said *said = RUN("doctor", "--strict");
    expect_said(said, 1);
    expect_line(said, "persistence", "warning", "a restart loses locks");
    expect_said(RUN("doctor"), 0);
}

SingleLaw(doctor, tells_that_writes_are_refused_without_replicas)
{
    redis_do(server, "CONFIG SET min-replicas-to-write 1");
    const struct said *said = RUN("doctor");
    expect_said(said, 1);
    expect_line(said, "replicas", "PROBLEM", "all writes are refused");
    expect_line(said, "lock", "PROBLEM", "NOREPLICAS");
}

SingleLaw(doctor, counts_slow_scripts)
{
    redis_do(server, "CONFIG SET slowlog-log-slower-than 0");
    redis_do(server, "EVAL return(1) 0");
    redis_do(server, "CONFIG SET slowlog-log-slower-than 60000000");
    const struct said *said = RUN("doctor");
    expect_line(said, "slow scripts", "warning", "scripts in the slow log");
}

SingleLaw(doctor, does_not_guess_what_the_server_refuses)
{
    redis_do(server, "ACL SETUSER default -info -config -slowlog -time -evalsha -script");
    const struct said *said = RUN("doctor");
    redis_do(server, "ACL SETUSER default +@all");
    expect_said(said, 1);
    expect_line(said, "version", "unknown", "INFO");
    expect_line(said, "eviction", "unknown", "");
    expect_line(said, "clock", "unknown", "TIME");
    expect_line(said, "slow scripts", "unknown", "SLOWLOG");
    expect_line(said, "lock", "PROBLEM", "NOPERM");
    check_has(said->out, "hirelock acl");
}

SingleLaw(doctor, acquires_no_lock_when_it_may_only_read)
{
    redis_do(server, "CONFIG RESETSTAT");
    const struct said *said = RUN("doctor", "--read-only");
    check(!strstr(said->out, "A lock of its own"));
    check_int(redis_calls(server, "evalsha"), 0);
}

SingleLaw(doctor, says_that_there_is_no_server)
{
    const struct said *said = RUN("doctor", "redis://user:secret@127.0.0.1:1");
    expect_said(said, 123);
    check_has(said->err, "connection refused");
    check(!strstr(said->err, "secret"));
}

Law(doctor, visits_every_node)
{
    const struct said *said = RUN("doctor", "--json");
    int visits = 0, masters = 0;

    for (const char *at = said->out; (at = strstr(at, "\"check\":\"persistence\"")) != NULL; at++)
        visits++;
    hl_client *client = open_client(NULL);
    hl_stats stats = HL_STATS_INIT;
    expect_ok(hl_client_stats(client, &stats));
    masters = (int)stats.nodes_now;
    check_int(visits, masters);
    check_has(said->out, "\"check\":\"lock\",\"state\":\"ok\"");
}

Law(doctor, has_a_help_that_fits)
{
    expect_help_fits("doctor");
    expect_said(RUN("doctor", "--sterict"), 125);
}

/* ---- Facts that no server shows at will ---- */

static char clock_state[64];

static void note_clock(const struct cli_finding *finding, void *arg)
{
    (void)arg;
    if (strcmp(finding->check, "clock") == 0)
        snprintf(clock_state, sizeof clock_state, "%s", cli_state_name(finding->state));
}

static const char *clock_of(int64_t ahead_us, int64_t drift_us, int64_t doubt_us)
{
    struct cli_checkup checkup = {.facts = {.has_clock = true,
                                            .clock_ahead_us = ahead_us,
                                            .clock_drift_us = drift_us,
                                            .clock_doubt_us = doubt_us,
                                            .clock_span_ms = 1000}};
    cli_checks_run(&checkup, note_clock, NULL);
    return clock_state;
}

Test(doctor, tells_a_clock_that_runs_wrong_from_one_that_shows_another_time)
{
    check_str(clock_of(0, 0, 0), "ok");
    check_str(clock_of(3600000000, 100, 0), "note");
    check_str(clock_of(0, 9000, 0), "ok");
    check_str(clock_of(0, 11000, 0), "PROBLEM");
    check_str(clock_of(0, -3000000, 0), "PROBLEM");
    check_str(clock_of(0, 25000, 20000), "ok"); /* slow answers tell little */
}

static char replicas_state[64];

static void note_replicas(const struct cli_finding *finding, void *arg)
{
    (void)arg;
    if (strcmp(finding->check, "replicas") == 0)
        snprintf(replicas_state, sizeof replicas_state, "%s", cli_state_name(finding->state));
}

static const char *state_of_replicas(char *count, char *min_replicas)
{
    char info[64];
    snprintf(info, sizeof info, "connected_slaves:%s\r\n", count);
    struct cli_checkup checkup = {.facts = {.info = info, .min_replicas = min_replicas}};

    cli_checks_run(&checkup, note_replicas, NULL);
    return replicas_state;
}

/* With min-replicas-to-write 1 a server with one replica loses all locks with it. */
Test(doctor, asks_for_min_replicas_where_there_are_two_replicas)
{
    check_str(state_of_replicas("0", "0"), "note");
    check_str(state_of_replicas("1", "0"), "note");
    check_str(state_of_replicas("2", "0"), "warning");
    check_str(state_of_replicas("2", "1"), "ok");
    check_str(state_of_replicas("1", "2"), "PROBLEM");
}

Test(doctor, finds_the_percentiles_of_its_round_trips)
{
    struct cli_pulse pulse = {0};

    check_int(cli_pulse_at(&pulse, 0.5), 0);
    for (int i = 1000; i > 0; i--)
        cli_pulse_add(&pulse, i);
    check_int(cli_pulse_at(&pulse, 0.5), 501);
    check_int(cli_pulse_at(&pulse, 0.99), 991);
    check_int(cli_pulse_at(&pulse, 1), 1000);
    cli_pulse_free(&pulse);
}

Test(doctor, reads_whole_fields_of_info_only)
{
    const struct cli_facts facts = {.info = (char[]){"# Memory\r\nused_memory_rss:7\r\n"
                                                     "used_memory:5\r\nrole:master\r\n"}};
    char text[32];

    check_int(cli_facts_number(&facts, "used_memory", -1), 5);
    check_int(cli_facts_number(&facts, "memory", -1), -1);
    check_int(cli_facts_number(&facts, "role", -1), -1);
    check(cli_facts_text(&facts, "role", text, sizeof text));
    check_str(text, "master");
}
