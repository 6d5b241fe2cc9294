/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock exporter: it goes on serving, whatever its HTTP clients and its server do. */

#include "cli/scrape.h"
#include "support/topologies.h"

SingleLaw(exporter_serves, its_pages_and_no_other)
{
    struct exporter exporter = EXPORTER();

    check_has(http_ask(exporter, HTTP_GET("/")), "href=\"/metrics\"");
    check_has(http_ask(exporter, HTTP_GET("/health")), "\r\n\r\nok\n");
    check_has(http_ask(exporter, HTTP_GET("/metrics")),
              "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    const char *text = http_ask(exporter, "HEAD /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
    check_has(text, "HTTP/1.1 200 ");
    check(!strstr(text, "hirelock_up"));
    check_has(http_ask(exporter, HTTP_GET("/etc/passwd")), "HTTP/1.1 404 ");
    check_has(http_ask(exporter, HTTP_GET("/metrics/")), "HTTP/1.1 404 ");
    text = http_ask(exporter,
                    "POST /metrics HTTP/1.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
    check_has(text, "HTTP/1.1 405 ");
    check_has(text, "Allow: GET, HEAD\r\n");
    check_has(http_ask(exporter, "DELETE / HTTP/1.1\r\nConnection: close\r\n\r\n"), " 405 ");
    check(!strstr(http_ask(exporter, "\x16\x03\x01 no HTTP at all\r\n\r\n"), " 200 "));
    scrape(exporter);
    exporter_end(exporter, SIGTERM);
}

SingleLaw(exporter_serves, no_request_that_is_too_long)
{
    enum { LONG = 100000 };
    struct exporter exporter = EXPORTER();
    char *request = free_at_end(calloc(1, LONG + 100), free);
    int used = snprintf(request, 100, "GET /metrics HTTP/1.1\r\nX: ");

    memset(request + used, 'x', LONG);
    check(!strstr(http_ask(exporter, request), "hirelock_up"));
    scrape(exporter);
    exporter_end(exporter, SIGTERM);
}

static void serve_beside_slow_ones(struct exporter exporter)
{
    enum { SLOW = 300 };
    int slow[SLOW];

    await_series(exporter, "hirelock_up", 1);
    for (int i = 0; i < SLOW; i++) {
        slow[i] = http_connect(exporter);
        check(i % 2 == 0 || send(slow[i], "GET /met", 8, MSG_NOSIGNAL) == 8);
    }
    for (int served = 0; served < 100; served++) {
        scrape(exporter);
        for (int i = 0; i < SLOW; i++) /* a byte keeps a connection from being silent */
            (void)!send(slow[i], "x", 1, MSG_NOSIGNAL);
    }
    for (int i = 0; i < SLOW; i++)
        close(slow[i]);
    exporter_end(exporter, SIGTERM);
}

SingleLaw(exporter_serves, beside_connections_that_never_end)
{
    serve_beside_slow_ones(EXPORTER());
}

/* As when its own client is connected to the many nodes of a cluster. */
SingleLaw(exporter_serves, beside_connections_that_never_end_and_many_descriptors)
{
    static const char *const argv[] = {
        "bash",
        "-c",
        "for i in {3..300}; do eval \"exec $i</dev/null\"; done; exec \"$@\"",
        "bash",
        HL_CLI_PATH,
        "exporter",
        "--listen",
        "0",
        "--interval",
        "0.1",
        NULL};

    serve_beside_slow_ones(exporter_await(said_start_program(NULL, argv)));
}

SingleLaw(exporter_serves, while_its_server_is_away)
{
    redis_do(server, "HSET stock " JAVA ":1 1");
    struct exporter exporter = EXPORTER();
    await_series(exporter, "hirelock_up", 1);
    redis_server_kill(server);
    await_series(exporter, "hirelock_up", 0);
    const char *text = scrape(exporter);
    check(!strstr(text, "hirelock_locks")); /* nothing old is told as if it were new */
    check(series_of(text, "hirelock_survey_age_seconds") > 0);
    check(series_of(text, "hirelock_surveys_total{result=\"failed\"}") >= 1);
    check_has(http_ask(exporter, HTTP_GET("/health")), "ok");
    redis_server_restart(server);
    await_series(exporter, "hirelock_up", 1);
    exporter_end(exporter, SIGTERM);
    check_has(exporter.said->err, "hirelock exporter: the survey failed: ");
    check_has(exporter.said->err, "hirelock exporter: surveys succeed again");
}

/* The most memory that it ever had. */
static long peak_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

/* Sends requests until the exporter takes no more, though its loop turns. Returns the bytes. */
static size_t send_unread(struct exporter exporter, int fd, size_t most)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
    enum { LENGTH = sizeof request - 1, TURNS = 100 };
    char many[200 * LENGTH];
    size_t sent = 0;

    for (size_t i = 0; i < sizeof many; i += LENGTH)
        memcpy(many + i, request, LENGTH);
    for (int turn = 0; turn < TURNS && sent < most; turn++) {
        ssize_t got = 0;
        while (sent < most && (got = send(fd, many + sent % LENGTH, sizeof many - sent % LENGTH,
                                          MSG_NOSIGNAL | MSG_DONTWAIT)) > 0) {
            sent += (size_t)got;
            turn = 0;
        }
        scrape(exporter);
    }
    return sent;
}

SingleLaw(exporter_serves, a_client_that_does_not_read_in_bounded_memory)
{
    enum { MANY = 64 * 1024 * 1024 };
    struct exporter exporter = EXPORTER();

    await_series(exporter, "hirelock_up", 1);
    int fd = http_connect(exporter);
    long before_kib = peak_kib(exporter.said->pid);
    size_t sent = send_unread(exporter, fd, MANY);
    long more_kib = peak_kib(exporter.said->pid) - before_kib;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    check_msg(before_kib > 0 && more_kib < 8000, "%ld KiB more for %zu bytes", more_kib, sent);
#else
    (void)more_kib, (void)sent;
#endif
    close(fd);
    exporter_end(exporter, SIGTERM);
}

static void cluster_up_alone(void)
{
    cluster_up_with(&(struct cluster_options){.without_replicas = true});
}

/* A part of the locks is not told as if it were the whole. */
Test(exporter_serves, while_a_master_of_its_cluster_is_away, .init = cluster_up_alone,
     .fini = server_down)
{
    struct redis_server *third = cluster_node(cluster, 2);
    static const char locks[] = "hirelock_locks{kind=\"lock\"}";
    hl_client *client = open_client_at(cluster_url(cluster), NULL);
    struct exporter exporter = EXPORTER("--url", cluster_url(cluster));

    for (int i = 0; i < 3; i++) {
        const char *name = cluster_name_at(cluster_node(cluster, i), "stock");
        expect_ok(hl_lock_acquire(new_lock(client, name), ERR));
    }
    await_series(exporter, locks, 3);
    redis_server_kill(third);
    await_series(exporter, "hirelock_up", 0);
    check(isnan(series_of(scrape(exporter), locks)));
    redis_server_restart(third); /* without its data */
    await_series(exporter, "hirelock_up", 1);
    check(series_of(scrape(exporter), locks) >= 2);
    exporter_end(exporter, SIGTERM);
}

SingleLaw(exporter_serves, before_its_server_is_there)
{
    redis_server_kill(server);
    struct exporter exporter = EXPORTER();
    await_count(exporter, "hirelock_surveys_total{result=\"failed\"}", 1);
    check(isnan(series_of(scrape(exporter), "hirelock_survey_age_seconds")));
    redis_server_restart(server);
    await_series(exporter, "hirelock_up", 1);
    redis_server_kill(server);
    exporter_end(exporter, SIGINT); /* in the middle of a survey, or in the pause */
}

SingleLaw(exporter_serves, while_its_server_is_silent)
{
    struct exporter exporter = EXPORTER();
    await_series(exporter, "hirelock_up", 1);
    redis_server_freeze(server);
    scrape(exporter);
    exporter_end(exporter, SIGTERM);
    redis_server_thaw(server);
}

SingleLaw(exporter_serves, says_that_a_user_may_not_survey)
{
    redis_do(server, "ACL SETUSER default -scan");
    struct exporter exporter = EXPORTER();
    await_count(exporter, "hirelock_surveys_total{result=\"failed\"}", 2);
    redis_do(server, "ACL SETUSER default +@all");
    await_series(exporter, "hirelock_up", 1);
    exporter_end(exporter, SIGTERM);
    check_has(exporter.said->err, "NOPERM");
    check_int(count_of(exporter.said->err, "the survey failed"), 1); /* once for each change */
}

SingleLaw(exporter_serves, at_a_port_that_is_free)
{
    struct exporter exporter = EXPORTER();
    char place[32];

    snprintf(place, sizeof place, "127.0.0.1:%d", exporter.port);
    const struct said *said = RUN("exporter", "--listen", place);
    expect_said(said, 125);
    check_has(said->err, "Address already in use; take another port");
    exporter_end(exporter, SIGTERM);
}

SingleLaw(exporter_serves, nothing_if_its_words_are_wrong)
{
    static const char *const places[] = {"65536", "http", "::1", ":80", "host", ""};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const struct said *said = RUN("exporter", "--listen", places[i]);
        expect_said(said, 125);
        check_has(said->err, "[IPV6]:PORT is wanted");
    }
    expect_said(RUN("exporter", "--names", "-1"), 125);
    expect_said(RUN("exporter", "--names", "1001"), 125);
    expect_said(RUN("exporter", "--interval", "0.01"), 125);
    expect_said(RUN("exporter", "--url", "http://x", "--listen", "0"), 125);
    expect_said(RUN("exporter", "a", "b"), 125);
}

/* ---- Many locks ---- */

static void fill(int locks)
{
    check_int(redis_int(server, "EVAL %s 0 %d",
                        "for i = 1, tonumber(ARGV[1]) do\n"
                        "  redis.call('HSET', 'lock:' .. i, '" JAVA ":1', 1)\n"
                        "  redis.call('PEXPIRE', 'lock:' .. i, 86400000)\n"
                        "  redis.call('ZADD', 'hirelock_queue:{lock:' .. i .. '}', 1, 'a')\n"
                        "end return redis.call('DBSIZE')",
                        locks),
              2 * locks);
}

SingleLaw(exporter_serves, a_hundred_thousand_locks_in_bounded_memory)
{
    struct exporter exporter = EXPORTER("--interval", "1");

    fill(10000);
    await_series(exporter, "hirelock_locks{kind=\"lock\"}", 10000);
    long few_kib = peak_kib(exporter.said->pid);
    fill(100000);
    await_series(exporter, "hirelock_locks{kind=\"lock\"}", 100000);
    const char *text = scrape(exporter);
    expect_series(text, "hirelock_locks_waited_for", 100000);
    check_int(count_of(text, "\nhirelock_lock_waiters{"), 20);
    long more_kib = peak_kib(exporter.said->pid) - few_kib;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    check_msg(few_kib > 0 && more_kib < 16000, "%ld KiB more", more_kib);
#else
    (void)more_kib; /* a sanitizer keeps what is freed */
#endif
    exporter_end(exporter, SIGTERM);
}
