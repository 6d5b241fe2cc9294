/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* 100,000 locks held by one process: what their renewal costs the server, and what they cost in
 * memory here. */
#include "bare.h"
#include "cores.h"
#include "held.h"
#include "instant.h"
#include "must.h"
#include "scenario.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAVES = 3 };

/* Of the heap; the mapped blocks are the large arrays of this file and of the library. */
static double holds_heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static double holds_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";

    must(file && fgets(line, sizeof(line), file), "no /proc/self/statm");
    fclose(file);
    const char *resident = strchr(line, ' '); /* the second number: pages */
    return resident ? strtod(resident, NULL) * (double)sysconf(_SC_PAGESIZE) : 0;
}

static void holds_bare(struct held *held, struct bare *bare, struct held_cost *sum)
{
    struct held_cost before = held_cost(held);

    bare_renew(bare);
    struct held_cost after = held_cost(held);
    sum->server_us += after.server_us - before.server_us;
    sum->script_us += after.script_us - before.script_us;
}

static void holds_tell_cost(struct report *report, const struct held_cost *ours,
                            const struct held_cost *theirs)
{
    double bare_us = theirs->server_us / (WAVES * HELD);

    report_at_least(report, "100,000 holds: renewals measured", ours->renewals, "",
                    (WAVES - 0.5) * HELD);
    report_figure(report, "100,000 holds: renewals per EVALSHA", ours->renewals / ours->calls, "");
    report_figure(report, "100,000 holds: server CPU per renewal", ours->server_us / ours->renewals,
                  "us");
    report_figure(report, "100,000 holds: of it, in the script", ours->script_us / ours->renewals,
                  "us");
    report_figure(report, "100,000 holds: server CPU per bare HEXISTS + PEXPIRE", bare_us, "us");
    report_figure(report, "100,000 holds: of that, in the bare script",
                  theirs->script_us / (WAVES * HELD), "us");
    report_at_most(report, "renewal_vs_bare_script", ours->server_us / ours->renewals / bare_us,
                   "x", 1.35);
}

/* The library's waves, and after each the same by a bare script. */
static void holds_renew(struct bench *bench, struct held *held, int64_t lease_ms)
{
    struct bare *bare = bare_open(&bench->server, "bench:held:", HELD, HELD_EACH, lease_ms);
    struct held_cost ours = {0}, theirs = {0};
    hl_histogram lag = HL_HISTOGRAM_INIT;

    for (int i = 0; i < WAVES; i++) {
        held_wave(held, &ours);
        holds_bare(held, bare, &theirs);
    }
    bare_close(bare);
    holds_tell_cost(&bench->report, &ours, &theirs);
    must(hl_client_histogram(held_client(held), HL_MEASURE_RENEWAL, &lag) == 0, "no histogram");
    report_figure(&bench->report, "100,000 holds: latest renewal after its due time",
                  (double)lag.max_us / 1e3, "ms");
}

static void holds_measure(struct bench *bench)
{
    const int64_t lease_ms = bench->is_quick ? 15000 : 30000;
    struct nodes nodes = nodes_single(&bench->server);
    double heap = holds_heap_bytes(), resident = holds_resident_bytes();
    struct held *held = held_open(&nodes, lease_ms);
    int64_t began = instant_now();

    held_acquire(held);
    report_figure(&bench->report, "100,000 holds: time to acquire them, 50 threads",
                  (double)(instant_now() - began) / 1e9, "s");
    report_figure(&bench->report, "100,000 holds: heap bytes per held lock, handle included",
                  (holds_heap_bytes() - heap) / HELD, "bytes");
    report_figure(&bench->report, "100,000 holds: resident bytes per held lock",
                  (holds_resident_bytes() - resident) / HELD, "bytes");
    holds_renew(bench, held, lease_ms);
    held_tell_losses(held, &bench->report, "100,000 holds");
    held_close(held);
}

/* On cores of their own, as in the other scenarios: the figure is the server's work, without the
 * cost of a core that the server and the client share. */
void scenario_holds(struct bench *bench)
{
    int server_core, client_core;

    report_heading("100,000 locks held by one process");
    bool has_two = cores_pick(&server_core, &client_core);
    if (has_two) {
        cores_pin_process(bench->server.pid, server_core);
        cores_pin_thread(client_core);
    }
    holds_measure(bench);
    if (has_two) {
        cores_free_thread();
        cores_free_process(bench->server.pid);
    }
}
