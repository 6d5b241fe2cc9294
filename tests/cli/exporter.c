/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock exporter: what each metric says of a state that is known. */

#include "cli/kinds_held.h"
#include "cli/scrape.h"

Law(exporter, counts_locks_of_each_kind_and_their_waiters)
{
    hl_client *client = open_client(NULL);
    struct kinds_held held = kinds_take(client, open_client(NULL));

    expect_ok(hl_lock_acquire(new_kind(client, "plain", HL_LOCK_REENTRANT), ERR));
    redis_do(server, "HSET rests " JAVA ":45:rest 1");
    struct exporter exporter = EXPORTER();
    await_series(exporter, "hirelock_locks_waiters", 1);
    await_series(exporter, "hirelock_locks{kind=\"lock\"}", 1);
    const char *text = scrape(exporter);
    expect_series(text, "hirelock_up", 1);
    expect_series(text, "hirelock_locks{kind=\"permits\"}", 1);
    expect_series(text, "hirelock_locks{kind=\"read lock\"}", 1);
    expect_series(text, "hirelock_locks{kind=\"write lock\"}", 1);
    expect_series(text, "hirelock_locks{kind=\"fenced lock\"}", 1);
    expect_series(text, "hirelock_locks{kind=\"fair lock\"}", 1);
    expect_series(text, "hirelock_locks{kind=\"resting\"}", 1);
    expect_series(text, "hirelock_locks{kind=\"other\"}", 0);
    expect_series(text, "hirelock_locks_waited_for", 1);
    check_has(text,
              "# HELP hirelock_lock_waiters Clients in the queue of this lock, and dead ones");
    expect_series(text, "hirelock_locks_without_expiry", 0);
    expect_series(text, "hirelock_lock_waiters{name=\"fair\"}", 1);
    check_int(count_of(text, "\nhirelock_lock_waiters{"), 1); /* the others are no news */
    kinds_pass_on(&held);
    await_series(exporter, "hirelock_locks_waiters", 0);
    exporter_end(exporter, SIGTERM);
}

Law(exporter, tells_of_a_server_without_locks)
{
    redis_do(server, "SET text 1");
    redis_do(server, "HSET setting mode fast");
    struct exporter exporter = EXPORTER();
    await_survey(exporter);
    const char *text = scrape(exporter);
    expect_series(text, "hirelock_locks{kind=\"lock\"}", 0);
    expect_series(text, "hirelock_locks_held_over{seconds=\"60\"}", 0);
    check(isnan(series_of(text, "hirelock_locks_oldest_hold_seconds")));
    check(isnan(series_of(text, "hirelock_locks_least_lease_left_seconds")));
    check(!strstr(text, "hirelock_lock_"));
    check(series_of(text, "hirelock_survey_keys") >= 1); /* the hash */
    exporter_end(exporter, SIGTERM);
}

Law(exporter, tells_of_a_lock_that_never_ends)
{
    redis_do(server, "HSET stuck " JAVA ":45 1");
    redis_do(server, "HSET fine " JAVA ":45 1");
    redis_do(server, "PEXPIRE fine 500000");
    struct exporter exporter = EXPORTER();
    await_series(exporter, "hirelock_locks_without_expiry", 1);
    const char *text = scrape(exporter);
    expect_series(text, "hirelock_lock_without_expiry{name=\"stuck\"}", 1);
    check(isnan(series_of(text, "hirelock_lock_without_expiry{name=\"fine\"}")));
    check(isnan(series_of(text, "hirelock_lock_lease_left_seconds{name=\"stuck\"}")));
    double left = series_of(text, "hirelock_locks_least_lease_left_seconds");
    check_msg(left > 60 && left <= 500, "%g", left);
    expect_series(text, "hirelock_locks_lease_left_under{seconds=\"60\"}", 0);
    expect_series(text, "hirelock_locks_lease_left_under{seconds=\"600\"}", 1);
    exporter_end(exporter, SIGTERM);
}

/* The holder's tag, as of a client that has held it since then. */
static void hold_since(const char *name, int64_t seconds)
{
    char tag[200];
    int64_t since_ms =
        (redis_int(server, "EVAL %s 1 %s", "return redis.call('TIME')[1]", name) - seconds) * 1000;

    redis_do(server, "HSET %s " JAVA ":45 1", name);
    redis_do(server, "PEXPIRE %s 500000", name);
    snprintf(tag, sizeof tag, JAVA ":45 7 %lld 4711 web-1 the worker", (long long)since_ms);
    redis_do(server, "SET hirelock_holder:{%s} %s", name, tag);
}

Law(exporter, tells_who_holds_for_long)
{
    hold_since("job", 3700);
    hold_since("young", 20);
    struct exporter exporter = EXPORTER();
    await_series(exporter, "hirelock_locks_held_over{seconds=\"3600\"}", 1);
    const char *text = scrape(exporter);
    expect_series(text, "hirelock_locks_held_over{seconds=\"10\"}", 2);
    expect_series(text, "hirelock_locks_held_over{seconds=\"86400\"}", 0);
    double oldest = series_of(text, "hirelock_locks_oldest_hold_seconds");
    check_msg(oldest >= 3700 && oldest < 86400, "%g", oldest);
    check(series_of(text, "hirelock_lock_held_seconds{name=\"job\"}") == oldest);
    check(series_of(text, "hirelock_lock_lease_left_seconds{name=\"job\"}") <= 500);
    expect_series(text,
                  "hirelock_lock_holder_info{name=\"job\",kind=\"lock\",host=\"web-1\","
                  "pid=\"4711\",thread=\"the worker\"}",
                  1);
    exporter_end(exporter, SIGTERM);
}

Law(exporter, knows_the_age_of_holds_of_this_library)
{
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO));

    expect_ok(hl_lock_acquire(new_kind(client, "area", HL_LOCK_REENTRANT), ERR));
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{area}"));
    struct exporter exporter = EXPORTER();
    await_survey(exporter);
    check(series_of(scrape(exporter), "hirelock_locks_oldest_hold_seconds") >= 0);
    exporter_end(exporter, SIGTERM);
}

static void wait_for(const char *name, int waiters)
{
    redis_do(server, "HSET %s " JAVA ":45 1", name);
    redis_do(server, "PEXPIRE %s 500000", name);
    for (int i = 0; i < waiters; i++)
        redis_do(server, "ZADD hirelock_queue:{%s} 1 waiter%d", name, i);
}

Law(exporter, names_only_those_that_most_wait_for)
{
    char name[32];

    for (int i = 1; i <= 12; i++) {
        snprintf(name, sizeof name, "n%d", i);
        wait_for(name, i);
    }
    struct exporter few = EXPORTER("--names", "3"), none = EXPORTER("--names", "0");
    await_series(few, "hirelock_locks_waiters", 78);
    const char *text = scrape(few);
    check_int(count_of(text, "\nhirelock_lock_waiters{"), 3);
    expect_series(text, "hirelock_lock_waiters{name=\"n12\"}", 12);
    expect_series(text, "hirelock_lock_waiters{name=\"n11\"}", 11);
    expect_series(text, "hirelock_lock_waiters{name=\"n10\"}", 10);
    expect_series(text, "hirelock_locks_waited_for", 12);
    await_series(none, "hirelock_locks_waiters", 78); /* two exporters of one server */
    check(!strstr(scrape(none), "name=\""));
    exporter_end(few, SIGTERM);
    exporter_end(none, SIGINT);
}

/* Well formed in the eyes of the program that reads it. */
static void expect_well_formed(const char *metrics)
{
    static char words[][16] = {"promtool", "check", "metrics"};
    char *argv[] = {words[0], words[1], words[2], NULL}, input[256], output[256], says[SAID_SIZE];
    int status = -1;

    snprintf(input, sizeof input, "%s/metrics", redis_server_dir(server));
    snprintf(output, sizeof output, "%s/promtool", redis_server_dir(server));
    FILE *file = fopen(input, "we");
    check(file && fputs(metrics, file) >= 0);
    fclose(file);
    pid_t pid = spawn_start(&(struct spawn){.argv = argv, .input = input, .output = output});
    check(spawn_reap(pid, SCRAPE_LONG_MS, &status));
    said_read(output, says);
    if (strstr(says, "cannot be executed"))
        skip("promtool is not here: script/bootstrap dev");
    check_msg(status == 0, "%s", says);
}

Law(exporter, writes_odd_names_as_list_shows_them)
{
    redis_do(server, "HSET %b " JAVA ":1 1", "a\"b\\\n\xff\xc3\xa4\x1b", (size_t)9);
    redis_do(server, "HSET name=\"x\",\\ " JAVA ":1 1");
    struct exporter exporter = EXPORTER();
    await_series(exporter, "hirelock_locks_without_expiry", 2);
    const char *text = scrape(exporter);
    expect_series(text,
                  "hirelock_lock_without_expiry{name=\"a\\\"b\\\\\\\\\\\\x0a\\\\xff\xc3\xa4"
                  "\\\\x1b\"}",
                  1);
    exporter_end(exporter, SIGTERM);
    expect_well_formed(text);
}

Law(exporter, takes_a_pattern_and_a_prefix)
{
    for (int i = 0; i < 3; i++)
        redis_do(server, "HSET app[1]:stock:%d " JAVA ":%d 1", i, i);
    redis_do(server, "HSET app1:stock:1 " JAVA ":1 1");
    redis_do(server, "HSET other " JAVA ":1 1");
    struct exporter exporter = EXPORTER("--prefix", "app[1]:", "stock:*");
    await_series(exporter, "hirelock_locks{kind=\"lock\"}", 3);
    expect_series(scrape(exporter), "hirelock_lock_without_expiry{name=\"stock:1\"}", 1);
    exporter_end(exporter, SIGTERM);
}

Law(exporter, looks_at_each_node_as_doctor_does)
{
    static const char *const checks[] = {"version", "role", "persistence", "replicas", "clock"};
    hl_client *client = open_client(NULL);
    struct exporter exporter = EXPORTER();
    char part[64];

    await_survey(exporter);
    const char *text = scrape(exporter);
    int nodes = (int)stats_of(client).nodes_now;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        snprintf(part, sizeof part, "check=\"%s\"} ", checks[i]);
        check_int(count_of(text, part), nodes);
    }
    check_int(count_of(text, "\nhirelock_server_round_trip_seconds_count{"), nodes);
    expect_series(text, "hirelock_nodes", nodes); /* of the exporter's own client */
    exporter_end(exporter, SIGTERM);
}

SingleLaw(exporter, passes_on_what_doctor_finds)
{
    redis_do(server, "CONFIG SET maxmemory 100mb");
    redis_do(server, "CONFIG SET maxmemory-policy allkeys-lru");
    redis_do(server, "CONFIG SET appendonly no");
    struct exporter exporter = EXPORTER();
    await_survey(exporter);
    const char *text = scrape(exporter);
    check_has(text, "check=\"eviction\"} 2\n");
    check_has(text, "check=\"persistence\"} 1\n");
    check_has(text, "check=\"role\"} 0\n");
    redis_do(server, "CONFIG SET maxmemory-policy noeviction");
    await_survey(exporter);
    check_has(scrape(exporter), "check=\"eviction\"} 0\n");
    redis_do(server, "ACL SETUSER default -info -config -slowlog");
    await_survey(exporter);
    text = scrape(exporter);
    redis_do(server, "ACL SETUSER default +@all");
    check(!strstr(text, "check=\"eviction\"")); /* not told, and not guessed */
    check_has(text, "check=\"clock\"} ");
    exporter_end(exporter, SIGTERM);
}

Law(exporter, helps)
{
    expect_help_fits("exporter");
}
