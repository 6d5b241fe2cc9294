/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The report's thread has a connection to PostgreSQL of its own: the page must not stand still
 * because the pool is busy, and a sale must not wait for the page.
 */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include "store.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum {
    REPORT_NS = 200000000,
    REPORT_PING_MS = 500,
    REPORT_STALE_S = 15,
    REPORT_SHARE = 10 /* orders are counted for no more than a tenth of the time */
};

struct report {
    struct sale *sale;        /* immutable */
    const char *address;      /* immutable */
    const struct bell *bell;  /* immutable */
    char name[64];            /* immutable; of this process's sessions */
    struct database database; /* the report's thread, as the next two */
    json_object *sales;       /* articles and their sum, as counted last; NULL: never yet */
    int64_t count_ms;         /* when to count again, on CLOCK_MONOTONIC */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    bool is_stopping;     /* mutex */
    char *text;           /* mutex; the newest */
    unsigned long number; /* mutex; of the text */
    time_t looked_s;      /* mutex; when the text was made, on CLOCK_MONOTONIC */
    const char *problem;  /* mutex; NULL when both servers answered */
};

static int64_t report_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static time_t report_now_s(void)
{
    return report_now_ms() / 1000;
}

/* The upper end of the bucket in which that part of the samples ends. */
static uint64_t histogram_quantile(const hl_histogram *histogram, unsigned percent)
{
    uint64_t wanted = (histogram->count * percent + 99) / 100, seen = 0;

    for (unsigned i = 0; i < 32 && histogram->count > 0; i++) {
        seen += histogram->bucket[i];
        if (seen >= wanted) /* no sample is longer than the longest */
            return UINT64_C(1) << i < histogram->max_us ? UINT64_C(1) << i : histogram->max_us;
    }
    return 0;
}

static void report_figures(const struct sale *sale, struct figures *figures)
{
    hl_histogram waits = HL_HISTOGRAM_INIT;

    hl_client_histogram(sale->client, HL_MEASURE_WAIT, &waits);
    *figures = (struct figures){.sold = atomic_load(&sale->answers[ANSWER_SOLD]),
                                .sold_out = atomic_load(&sale->answers[ANSWER_SOLD_OUT]),
                                .tried_again = atomic_load(&sale->answers[ANSWER_TRY_AGAIN]),
                                .fenced = atomic_load(&sale->fenced),
                                .lost = atomic_load(&sale->lost),
                                .waits = waits.count,
                                .wait_p50_us = histogram_quantile(&waits, 50),
                                .wait_p99_us = histogram_quantile(&waits, 99),
                                .wait_max_us = waits.max_us};
}

static json_object *report_parse(PGresult *result)
{
    json_object *json = result ? json_tokener_parse(PQgetvalue(result, 0, 0)) : NULL;

    PQclear(result);
    return json;
}

/* The more orders there are, the longer it takes and the less often it is done. When it fails the
 * sales of last time stay: it may only have taken too long. */
static void report_count(struct report *report)
{
    int64_t began_ms = report_now_ms();

    if (began_ms < report->count_ms)
        return;
    json_object *sales = report_parse(store_sales(&report->database));
    report->count_ms = began_ms + REPORT_SHARE * (report_now_ms() - began_ms);
    if (!sales) {
        fprintf(stderr, "shop: the orders cannot be counted: %s\n", report->database.why);
        return;
    }
    json_object_put(report->sales);
    report->sales = sales;
}

/* NULL: it failed. A note that is written is what shows that PostgreSQL serves. */
static json_object *report_ask_database(struct report *report)
{
    static const char *const keys[] = {"articles", "sum"};
    const char *id = hl_client_id(report->sale->client);
    struct database *database = &report->database;
    struct figures figures;

    if (atomic_load(&report->sale->is_hurried) && !database_is_open(database))
        return NULL; /* the end does not wait for a server that is away */
    if (!database_open(database, report->sale->config->database_url, report->name))
        return NULL;
    report_figures(report->sale, &figures);
    if (!store_note(database, id, report->address, &figures))
        return NULL;
    json_object *json = report_parse(store_processes(database));
    if (!json)
        return NULL;
    report_count(report);
    for (int i = 0; i < 2; i++) {
        json_object *part = json_object_object_get(report->sales, keys[i]);
        if (part)
            json_object_object_add(json, keys[i], json_object_get(part));
    }
    return json;
}

/* Who holds an article's lock, by Redis. The thread is known of a hold that lasts for 20 ms. */
static json_object *report_lock(const char *article, const hl_lock_info *info)
{
    json_object *json = json_object_new_object();
    const char *colon = strchr(info->owner, ':');
    int length = (int)(colon ? colon - info->owner : (long)strlen(info->owner));

    json_object_object_add(json, "article", json_object_new_string(article));
    if (!info->locked)
        return json;
    json_object_object_add(json, "process", json_object_new_string_len(info->owner, length));
    json_object_object_add(json, "thread", json_object_new_string(info->thread));
    json_object_object_add(json, "held_ms", json_object_new_int64(info->held_ms));
    json_object_object_add(json, "lease_left_ms", json_object_new_int64(info->lease_left_ms));
    return json;
}

static json_object *report_locks(const struct sale *sale)
{
    json_object *locks = json_object_new_array();

    for (int i = 0; i < sale->config->article_count; i++) {
        hl_lock_info info = HL_LOCK_INFO_INIT;

        if (hl_lock_inspect(sale->locks[i], &info, NULL) == 0)
            json_object_array_add(locks, report_lock(sale->config->articles[i].name, &info));
    }
    return locks;
}

/* How long acquires of this process waited: pairs of the bucket's upper end, and its count. */
static json_object *report_waits(const struct sale *sale)
{
    json_object *waits = json_object_new_array();
    hl_histogram histogram = HL_HISTOGRAM_INIT;

    hl_client_histogram(sale->client, HL_MEASURE_WAIT, &histogram);
    for (unsigned i = 0; i < 32; i++) {
        json_object *pair = json_object_new_array();

        if (histogram.bucket[i] == 0) {
            json_object_put(pair);
            continue;
        }
        json_object_array_add(pair, json_object_new_int64((int64_t)(UINT64_C(1) << i)));
        json_object_array_add(pair, json_object_new_int64((int64_t)histogram.bucket[i]));
        json_object_array_add(waits, pair);
    }
    return waits;
}

static void report_publish(struct report *report, json_object *json, const char *problem)
{
    char *text = strdup(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));

    pthread_mutex_lock(&report->mutex);
    report->problem = problem;
    report->looked_s = report_now_s();
    if (text) {
        free(report->text);
        report->text = text;
        report->number++;
    }
    pthread_mutex_unlock(&report->mutex);
    bell_ring(report->bell);
}

/* Once for each change: an outage may last. A server's own words may name hosts and users, so they
 * are for the log only. */
static void report_tell(const struct report *report, const char *problem, const char *server,
                        const char *why)
{
    if (problem == report->problem) /* only this thread writes it */
        return;
    if (problem)
        fprintf(stderr, "shop: %s: %s\n", server, why);
    else if (report->number > 0)
        fprintf(stderr, "shop: both servers answer again\n");
}

static void report_look(struct report *report)
{
    static const char no_postgres[] = "PostgreSQL does not serve",
                      no_redis[] = "Redis does not serve";
    struct sale *sale = report->sale;
    hl_error err = HL_ERROR_INIT;
    json_object *json = report_ask_database(report);
    const char *problem = json ? NULL : no_postgres;

    if (!json)
        json = json_object_new_object();
    /* Asked first, for an inspect would wait for a server that is away for longer than this. */
    bool has_redis = hl_client_ping(sale->client, REPORT_PING_MS, &err) == 0;
    if (!has_redis && !problem)
        problem = no_redis;
    report_tell(report, problem, problem == no_redis ? "Redis" : "PostgreSQL",
                problem == no_redis ? err.text : report->database.why);
    json_object_object_add(json, "locks", has_redis ? report_locks(sale) : json_object_new_array());
    json_object_object_add(json, "waits", report_waits(sale));
    json_object_object_add(json, "is_locked", json_object_new_boolean(sale->config->is_locked));
    json_object_object_add(json, "me", json_object_new_string(hl_client_id(sale->client)));
    json_object_object_add(json, "problem", json_object_new_string(problem ? problem : ""));
    report_publish(report, json, problem);
    json_object_put(json);
}

/* True: go on. */
static bool report_pause(struct report *report)
{
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += REPORT_NS;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&report->mutex);
    while (!report->is_stopping &&
           pthread_cond_timedwait(&report->stopped, &report->mutex, &end) == 0)
        ;
    bool goes_on = !report->is_stopping;
    pthread_mutex_unlock(&report->mutex);
    return goes_on;
}

static void *report_run(void *arg)
{
    struct report *report = arg;

    prctl(PR_SET_NAME, "report");
    do
        report_look(report);
    while (report_pause(report));
    /* The last figures, and that this process has left: it is not gone. */
    report_look(report);
    if (report->database.connection)
        store_leave(&report->database, hl_client_id(report->sale->client));
    database_close(&report->database);
    return NULL;
}

static bool report_begin(struct report *report)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = pthread_create(&report->thread, NULL, report_run, report);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

static void report_free(struct report *report)
{
    pthread_cond_destroy(&report->stopped);
    pthread_mutex_destroy(&report->mutex);
    json_object_put(report->sales);
    free(report->text);
    free(report);
}

struct report *report_start(struct sale *sale, const char *address, const struct bell *bell)
{
    struct report *report = calloc(1, sizeof(*report));
    pthread_condattr_t monotonic;

    if (!report)
        return NULL;
    report->sale = sale;
    report->address = address;
    report->bell = bell;
    snprintf(report->name, sizeof(report->name), "shop %s", hl_client_id(sale->client));
    report->problem = "starting";
    pthread_mutex_init(&report->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&report->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (report_begin(report))
        return report;
    report_free(report);
    return NULL;
}

void report_stop(struct report *report)
{
    if (!report)
        return;
    pthread_mutex_lock(&report->mutex);
    report->is_stopping = true;
    pthread_cond_signal(&report->stopped);
    pthread_mutex_unlock(&report->mutex);
    pthread_join(report->thread, NULL);
    report_free(report);
}

char *report_text(struct report *report, unsigned long after, unsigned long *ret_number)
{
    pthread_mutex_lock(&report->mutex);
    char *text = report->number > after ? strdup(report->text) : NULL;
    if (text)
        *ret_number = report->number;
    pthread_mutex_unlock(&report->mutex);
    return text;
}

const char *report_problem(struct report *report)
{
    pthread_mutex_lock(&report->mutex);
    bool is_old = report->number > 0 && report_now_s() - report->looked_s > REPORT_STALE_S;
    const char *problem = is_old ? "a server has not answered for a while" : report->problem;
    pthread_mutex_unlock(&report->mutex);
    return problem;
}
