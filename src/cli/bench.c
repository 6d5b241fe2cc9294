/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock bench: what one machine gets from one server, in about a minute. */
#include "cli/output.h"
#include "cli/pulse.h"
#include "cli/server.h"

#include <hirelock/command.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BENCH_SECONDS = 50, /* of all parts together */
    BENCH_THREADS = 8,
    BENCH_THREADS_MOST = 256,
    BENCH_WAIT_MS = 10000, /* for a turn: a server that stands still ends the part */
    BENCH_KEY_JSON = 1
};

struct bench_words {
    struct cli_server server;
    int64_t ms;
    int threads;
    bool is_json;
};

/* What all threads of a part share. */
struct bench_part {
    hl_client *client[2];
    const char *does;
    bool is_shared;      /* all threads have one name */
    bool is_alternating; /* each thread has a client of its own */
    int threads;
    int64_t end_ns;
    _Atomic(int64_t) released_ns; /* by the last owner */
};

struct bench_worker {
    struct bench_part *part;
    pthread_t thread;
    int number;
    struct cli_pulse pulse;
    uint64_t done;
    hl_error err; /* its code is 0 while all goes well */
};

static error_t bench_parse(int key, char *word, struct argp_state *state)
{
    struct bench_words *words = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case BENCH_KEY_JSON:
        words->is_json = true;
        return 0;
    case 't':
        words->threads = (int)strtol(word, &end, 10);
        if (*end || words->threads < 1 || words->threads > BENCH_THREADS_MOST)
            argp_error(state, "'%s' is no number from 1 to %d", word, BENCH_THREADS_MOST);
        return 0;
    case 's':
        words->ms = cli_read_time(word);
        if (words->ms < 1000)
            argp_error(state, "'%s' is no time of a second or more: 10, 1m", word);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': only options, please; --url says which server", word);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option bench_options[] = {
    {"json", BENCH_KEY_JSON, NULL, 0, "an object a line", 0},
    {"threads", 't', "N", 0, "of the parts with several threads (8)", 0},
    {"time", 's', "TIME", 0, "for all parts together (50)", 0},
    {0}};
static const struct argp_child bench_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp bench_argp = {
    .options = bench_options,
    .parser = bench_parse,
    .doc = "Measures what this machine gets from this server: round trips, and locks.\v"
           "Examples:\n"
           "  hirelock bench --url rediss://locks.example\n"
           "  hirelock bench --time 10 --threads 32 --json\n\n"
           "The figures are of this machine, the network, the server and all that runs there "
           "meanwhile. A pair is an acquire and a release; each pair that no other owner waits for "
           "costs two round trips, so compare with the first line. A hand-over is the time from "
           "before a release to the return of the acquire that waited, at another client. It uses "
           "names that begin with 'hirelock:bench:', and leaves nothing behind.",
    .children = bench_children};

static bool bench_has_time(const struct bench_worker *worker)
{
    return worker->err.code == 0 && cli_pulse_now() < worker->part->end_ns;
}

static void bench_note(struct bench_worker *worker, int64_t ns)
{
    cli_pulse_add(&worker->pulse, ns);
    worker->done++;
}

static void *bench_ping(void *arg)
{
    struct bench_worker *worker = arg;

    while (bench_has_time(worker)) {
        int64_t began = cli_pulse_now();
        if (hl_client_ping(worker->part->client[0], BENCH_WAIT_MS, &worker->err) == 0)
            bench_note(worker, cli_pulse_now() - began);
    }
    return NULL;
}

static hl_lock *bench_lock(struct bench_worker *worker)
{
    const struct bench_part *part = worker->part;
    hl_client *client = part->client[part->is_alternating ? worker->number % 2 : 0];
    hl_lock *lock = NULL;
    char name[96];

    snprintf(name, sizeof(name), "hirelock:bench:%s:%d", hl_client_id(part->client[0]),
             part->is_shared ? 0 : worker->number);
    return hl_lock_new(client, name, &lock, &worker->err) == 0 ? lock : NULL;
}

/* One acquire and one release. With owners that take turns the time is that from the last release;
 * else that of the pair. */
static void bench_pair_once(struct bench_worker *worker, hl_lock *lock)
{
    struct bench_part *part = worker->part;
    int64_t began = cli_pulse_now();

    if (hl_lock_acquire_for(lock, BENCH_WAIT_MS, &worker->err) < 0)
        return;
    int64_t released = atomic_load(&part->released_ns);
    if (part->is_alternating && released > began)
        bench_note(worker, cli_pulse_now() - released);
    atomic_store(&part->released_ns, cli_pulse_now());
    if (hl_lock_release(lock, &worker->err) == 0 && !part->is_alternating)
        bench_note(worker, cli_pulse_now() - began);
}

static void *bench_pairs(void *arg)
{
    struct bench_worker *worker = arg;
    hl_lock *lock = bench_lock(worker);

    while (lock && bench_has_time(worker))
        bench_pair_once(worker, lock);
    hl_lock_free(lock);
    return NULL;
}

static void bench_join(struct bench_worker *all, struct bench_worker *worker)
{
    pthread_join(worker->thread, NULL);
    if (worker == all)
        return;
    for (size_t i = 0; i < worker->pulse.count; i++)
        cli_pulse_add(&all->pulse, worker->pulse.ns[i]);
    all->done += worker->done;
    if (all->err.code == 0)
        all->err = worker->err;
    cli_pulse_free(&worker->pulse);
}

static json_object *bench_row(const struct bench_part *part, struct bench_worker *all, double s)
{
    json_object *row = json_object_new_object();

    json_object_object_add(row, "what", json_object_new_string(part->does));
    json_object_object_add(row, "threads", json_object_new_int(part->threads));
    json_object_object_add(row, "per_second", json_object_new_double((double)all->done / s));
    json_object_object_add(row, "p50_us",
                           json_object_new_double((double)cli_pulse_at(&all->pulse, 0.5) / 1e3));
    json_object_object_add(row, "p99_us",
                           json_object_new_double((double)cli_pulse_at(&all->pulse, 0.99) / 1e3));
    json_object_object_add(row, "slowest_us",
                           json_object_new_double((double)cli_pulse_at(&all->pulse, 1) / 1e3));
    return row;
}

/* Runs a part; NULL if it failed, and *ret_err says why. */
static json_object *bench_run_part(struct bench_part *part, void *(*run)(void *), int64_t ns,
                                   hl_error *ret_err)
{
    struct bench_worker worker[BENCH_THREADS_MOST] = {0};
    int64_t began = cli_pulse_now();
    json_object *row = NULL;
    int started = 0;

    part->end_ns = began + ns;
    for (; started < part->threads; started++) {
        worker[started] = (struct bench_worker){.part = part, .number = started};
        worker[started].err = (hl_error)HL_ERROR_INIT;
        if (pthread_create(&worker[started].thread, NULL, run, &worker[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++)
        bench_join(&worker[0], &worker[i]);
    *ret_err = worker[0].err;
    if (started > 0 && worker[0].err.code == 0)
        row = bench_row(part, &worker[0], (double)(cli_pulse_now() - began) / 1e9);
    cli_pulse_free(&worker[0].pulse);
    return row;
}

static char *bench_say_us(const json_object *value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.3f ms", json_object_get_double(value) / 1e3);
    return strdup(text);
}

static char *bench_say_rate(const json_object *value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.0f/s", json_object_get_double(value));
    return strdup(text);
}

static const struct cli_column bench_columns[] = {{"what", "WHAT", NULL, false},
                                                  {"threads", "THREADS", NULL, true},
                                                  {"per_second", "RATE", bench_say_rate, true},
                                                  {"p50_us", "HALF WITHIN", bench_say_us, true},
                                                  {"p99_us", "99 % WITHIN", bench_say_us, true},
                                                  {"slowest_us", "ALL WITHIN", bench_say_us, true}};

enum { BENCH_PARTS = 5 };

static int bench_all(const struct bench_words *words, hl_client *const client[2])
{
    struct bench_part parts[BENCH_PARTS] = {
        {.does = "PING", .threads = 1},
        {.does = "pairs, one owner", .threads = 1},
        {.does = "pairs, a name for each thread", .threads = words->threads},
        {.does = "pairs, all threads for one name", .threads = words->threads, .is_shared = true},
        {.does = "hand-over between two clients",
         .threads = 2,
         .is_shared = true,
         .is_alternating = true}};
    json_object *rows = json_object_new_array();
    hl_error err = HL_ERROR_INIT;

    for (int i = 0; i < BENCH_PARTS && err.code == 0; i++) {
        parts[i].client[0] = client[0];
        parts[i].client[1] = client[1];
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r%d of %d: %-40s", i + 1, BENCH_PARTS, parts[i].does);
        json_object *row = bench_run_part(&parts[i], i == 0 ? bench_ping : bench_pairs,
                                          words->ms * 1000000 / BENCH_PARTS, &err);
        if (row)
            json_object_array_add(rows, row);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%*s\r", 60, "");
    for (size_t i = 0; words->is_json && i < json_object_array_length(rows); i++)
        cli_print_json(json_object_array_get_idx(rows, i));
    if (!words->is_json)
        cli_print_table(stdout, rows, bench_columns,
                        sizeof(bench_columns) / sizeof(bench_columns[0]));
    json_object_put(rows);
    return err.code == 0 ? CLI_OK : cli_failed(&err);
}

static int bench_run(int argc, char **argv)
{
    struct bench_words words = {.ms = INT64_C(1000) * BENCH_SECONDS, .threads = BENCH_THREADS};
    hl_client *client[2] = {NULL, NULL};

    cli_parse(&cli_bench, argc, argv, &words);
    int status = cli_server_open(&words.server, NULL, &client[0]);
    if (status == CLI_OK)
        status = cli_server_open(&words.server, NULL, &client[1]);
    if (status == CLI_OK)
        status = bench_all(&words, client);
    hl_client_close(client[1]);
    cli_server_close(&words.server, client[0]);
    return status;
}

const struct cli_command cli_bench = {.name = "bench",
                                      .summary = "measure round trips and locks at this server",
                                      .argp = &bench_argp,
                                      .run = bench_run};
