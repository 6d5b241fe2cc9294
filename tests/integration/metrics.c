/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Metrics as text: true, whole, well formed by promtool's judgement, and refused where they would
 * not be. */

#include "support/actor.h"
#include "support/failing_malloc.h"
#include "support/kit.h"
#include "support/redis_server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[64 * 1024];

static const char *format_with(hl_client *client, const hl_label *labels)
{
    int length = hl_metrics_format(&client, labels ? &labels : NULL, 1, text, sizeof text);

    check_msg(length > 0 && (size_t)length < sizeof text, "%d: %s", length, hl_err_last()->text);
    check_int(strlen(text), length);
    return text;
}

static const char *format(hl_client *client)
{
    return format_with(client, NULL);
}

/* The value of a line that begins with this sample; -1: there is none. */
static double value_of(const char *sample)
{
    char line[256];

    snprintf(line, sizeof line, "\n%s ", sample);
    const char *found = strstr(text, line);
    return found ? atof(found + strlen(line)) : -1;
}

#define check_value(sample, expected)                                                              \
    check_msg(value_of(sample) == (expected), "%s is %g in\n%s", sample, value_of(sample), text)

SingleLaw(metrics, count_what_the_client_did)
{
    hl_client *client = open_client(NULL), *other = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");

    for (int i = 0; i < 3; i++) {
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_outcome(hl_lock_try_acquire(new_lock(other, "stock"), NULL), HL_EBUSY);
        expect_ok(hl_lock_release(lock, ERR));
    }
    expect_ok(hl_lock_acquire(lock, ERR));
    format(client);
    check_value("hirelock_acquires_total", 4);
    check_value("hirelock_releases_total", 3);
    check_value("hirelock_holds", 1);
    check_value("hirelock_losses_total", 0);
    check_value("hirelock_wait_seconds_count", 4);
    check_value("hirelock_wait_seconds_bucket{le=\"+Inf\"}", 4);
    check_value("hirelock_hold_seconds_count", 3);
    check_value("hirelock_nodes", 1);
    check(value_of("hirelock_wait_seconds_sum") > 0);
    format(other);
    check_value("hirelock_acquires_total", 0);
    check_value("hirelock_failures_total{call=\"acquire\",reason=\"busy\"}", 3);
    check_value("hirelock_failures_total{call=\"acquire\",reason=\"timeout\"}", 0);
    expect_ok(hl_lock_release(lock, ERR));
}

SingleLaw(metrics, count_losses_jeopardies_and_connections)
{
    hl_client *client = open_client(CLIENT(.watchdog_timeout_ms = slow_ms(6000)));
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    redis_server_freeze(server);
    wait_stat(client, losses, 1);
    format(client);
    check_value("hirelock_losses_total", 1);
    check_value("hirelock_jeopardies_total", 1);
    check_int(stats_of(client).jeopardies, 1);
    redis_server_thaw(server);
    redis_do(server, "CLIENT KILL TYPE normal");
    wait_stat(client, reconnects, 1);
    format(client);
    check(value_of("hirelock_reconnects_total") >= 1);
    hl_lock_release(lock, NULL);
}

SingleLaw(metrics, name_each_node_and_whether_it_is_connected)
{
    hl_client *client = open_client(NULL);
    const char *path = strchr(redis_server_url(server), '/') + 2;
    char sample[512];

    format(client);
    snprintf(sample, sizeof sample, "hirelock_node_connected{address=\"%s\",role=\"master\"}",
             path);
    check_value(sample, 1);
    snprintf(sample, sizeof sample, "hirelock_node_lanes{address=\"%s\",role=\"master\"}", path);
    check_value(sample, 1);
}

SingleLaw(metrics, have_buckets_that_never_shrink_and_end_with_the_count)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");

    for (int i = 0; i < 20; i++) {
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
    }
    format(client);
    double last = 0, last_le = 0;
    int buckets = 0;
    static const char head[] = "\nhirelock_hold_seconds_bucket{le=\"";
    for (const char *at = text; (at = strstr(at, head)); buckets++) {
        at += strlen(head);
        double le = strncmp(at, "+Inf", 4) == 0 ? 1e300 : atof(at);
        double value = atof(strchr(at, ' '));
        check_msg(le > last_le && value >= last, "%.40s", at);
        last = value;
        last_le = le;
    }
    check_int(buckets, 32);
    check_int(last, 20);
    check_value("hirelock_hold_seconds_count", 20);
}

SingleLaw(metrics, of_several_clients_are_one_text)
{
    hl_client *const clients[] = {open_client(NULL), open_client(NULL)};
    const hl_label orders[] = {{"client", "orders"}, {"zone", "a\"b\\c\n"}, {NULL, NULL}};
    const hl_label stock[] = {{"client", "stock"}, {NULL, NULL}};
    const hl_label *const labels[] = {orders, stock};

    expect_ok(hl_lock_acquire(new_lock(clients[1], "stock"), ERR));
    int length = hl_metrics_format(clients, labels, 2, text, sizeof text);
    check_msg(length > 0 && length < (int)sizeof text, "%d", length);
    check_value("hirelock_acquires_total{client=\"orders\",zone=\"a\\\"b\\\\c\\n\"}", 0);
    check_value("hirelock_acquires_total{client=\"stock\"}", 1);
    check(strstr(strstr(text, "# TYPE hirelock_acquires_total") + 1,
                 "# TYPE hirelock_acquires_total") == NULL);
}

SingleLaw(metrics, are_cut_as_snprintf_cuts)
{
    hl_client *client = open_client(NULL);
    static char cut[64 * 1024];
    int whole = (int)strlen(format(client));

    check_int(hl_metrics_format(&client, NULL, 1, NULL, 0), whole);
    for (int size = 1; size < whole + 2; size += size < 64 ? 1 : 997) {
        memset(cut, '#', sizeof cut);
        check_int(hl_metrics_format(&client, NULL, 1, cut, (size_t)size), whole);
        check_int(cut[size], '#');
        check_int(strlen(cut), size - 1 < whole ? size - 1 : whole);
        check_int(strncmp(cut, text, strlen(cut)), 0);
    }
    check_msg(whole <= 16 * 1024, "%d bytes: metrics.h promises room", whole);
}

static void expect_refused(hl_client *client, const hl_label *labels, const char *says)
{
    check_int(hl_metrics_format(&client, &labels, 1, text, sizeof text), HL_EINVAL);
    check_has(hl_err_last()->text, says);
}

SingleLaw(metrics, refuse_labels_that_would_spoil_them)
{
    hl_client *client = open_client(NULL);

    expect_refused(client, (const hl_label[]){{"1a", "x"}, {NULL, NULL}}, "'1a' is no name");
    expect_refused(client, (const hl_label[]){{"__x", "x"}, {NULL, NULL}}, "is no name");
    expect_refused(client, (const hl_label[]){{"le", "x"}, {NULL, NULL}}, "of their own");
    expect_refused(client, (const hl_label[]){{"address", "x"}, {NULL, NULL}}, "of their own");
    expect_refused(client, (const hl_label[]){{"a", NULL}, {NULL, NULL}}, "no value");
    expect_refused(client, (const hl_label[]){{"a", "x"}, {"b", "x"}, {"a", "y"}, {NULL, NULL}},
                   "'a' is there twice");
    check_int(hl_metrics_format(NULL, NULL, 1, text, 10), HL_EINVAL);
    check_int(hl_metrics_format(&client, NULL, 0, text, 10), HL_EINVAL);
    check_int(hl_metrics_format(&client, NULL, 1, NULL, 10), HL_EINVAL);
    hl_client *const twice[] = {client, client}, *const none[] = {NULL};
    check_int(hl_metrics_format(twice, NULL, 2, text, sizeof text), HL_EINVAL);
    check_has(hl_err_last()->text, "clients 0 and 1 have the same labels");
    /* "An empty label value is the same as none" (Prometheus docs, "Data model") */
    const hl_label *const empty[] = {(const hl_label[]){{"client", ""}, {NULL, NULL}}, NULL};
    check_int(hl_metrics_format(twice, empty, 2, text, sizeof text), HL_EINVAL);
    check_has(hl_err_last()->text, "clients 0 and 1 have the same labels");
    /* Both are U+FFFD in the text; what differs there is no refusal. */
    const hl_label *broken[] = {(const hl_label[]){{"client", "a\xff"}, {NULL, NULL}},
                                (const hl_label[]){{"client", "a\xfe"}, {NULL, NULL}}};
    check_int(hl_metrics_format(twice, broken, 2, text, sizeof text), HL_EINVAL);
    check_has(hl_err_last()->text, "clients 0 and 1 have the same labels");
    broken[1] = (const hl_label[]){{"client", "a\xfe\xfe"}, {NULL, NULL}};
    check(hl_metrics_format(twice, broken, 2, text, sizeof text) > 0);
    check_int(hl_metrics_format(none, NULL, 1, text, sizeof text), HL_EINVAL);
}

static hl_client *short_client;
static int short_length, short_failures;

static void format_short(void *arg)
{
    (void)arg;
    short_length = hl_metrics_format(&short_client, NULL, 1, text, sizeof text);
}

static void verify_short(void *arg, bool failed)
{
    (void)arg;
    short_failures += short_length == HL_ENOMEM;
    check(short_length > 0 ||
          (failed && short_length == HL_ENOMEM)); /* or another thread's failed */
}

SingleLaw(metrics, report_that_memory_is_out)
{
    const struct failing_scenario scenario = {
        .scope = FAILING_PROCESS, .run = format_short, .verify = verify_short};

    if (!failing_malloc_available())
        return;
    short_client = open_client(NULL);
    format(short_client);
    check(failing_malloc_sweep(&scenario) >= 2);
    check(short_failures > 0);
}

static void *format_again(void *arg)
{
    static char other[64 * 1024];
    hl_client *client = arg;
    int length = hl_metrics_format(&client, NULL, 1, other, sizeof other);

    return length > 0 && strstr(other, "hirelock_acquires_total") ? arg : NULL;
}

SingleLaw(metrics, may_be_asked_by_a_thread_beside_others_that_work)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    pthread_t asker;
    void *answer;

    for (int i = 0; i < 20; i++) {
        check_int(pthread_create(&asker, NULL, format_again, client), 0);
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
        check_int(pthread_join(asker, &answer), 0);
        check(answer != NULL);
    }
}
