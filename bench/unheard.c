/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* 1,000 locks are released, and no waiter hears of it: when does each of them find out? */
#include "grants.h"
#include "instant.h"
#include "must.h"
#include "raw.h"
#include "samples.h"

#include <stdio.h>

enum {
    UNHEARD_NAMES = 1000,
    UNHEARD_POLL_MS = 1300, /* the longest: 1,000 and 30 % */
    UNHEARD_ASK_MS = 100,   /* for the asking itself */
};

static void unheard_name(struct raw *raw, int number)
{
    char name[64];

    snprintf(name, sizeof(name), "bench:unheard:%d", number);
    raw_name(raw, name);
}

/* Spread over more than a poll period, so that every phase of it occurs. */
static void unheard_release(struct raw *holder, struct grants *grants)
{
    for (int i = 0; i < grants->count; i++) {
        unheard_name(holder, i);
        grants->grant[i].free_at = instant_now();
        raw_release_unheard(holder);
        instant_sleep_ms(2);
    }
}

void scenario_unheard(struct bench *bench)
{
    struct samples waits = {0};
    struct raw holder;
    int in_time = 0;

    report_heading("the message of a release is lost");
    raw_open(&holder, &bench->server, "", 0);
    for (int i = 0; i < UNHEARD_NAMES; i++) {
        unheard_name(&holder, i);
        must(raw_acquire(&holder), "the lock is not free");
    }
    hl_client *client = scenario_client(bench, NULL);
    struct grants *grants = grants_begin(bench, client, "bench:unheard:", UNHEARD_NAMES);
    unheard_release(&holder, grants);
    grants_wait(grants, 10000);

    for (int i = 0; i < grants->count; i++) {
        const struct grant *grant = &grants->grant[i];
        if (grant->served_at == 0)
            continue;
        double ms = (double)(grant->served_at - grant->free_at) / 1e6;
        samples_add(&waits, ms);
        in_time += ms <= UNHEARD_POLL_MS + UNHEARD_ASK_MS;
    }
    report_at_least(&bench->report, "lost message: grant within the poll period, of 1,000", in_time,
                    "", UNHEARD_NAMES);
    report_figure(&bench->report, "lost message: grant after the release, median",
                  samples_quantile(&waits, 0.5), "ms");
    report_figure(&bench->report, "lost message: grant after the release, max", samples_max(&waits),
                  "ms");
    grants_release(grants);
    hl_client_close(client);
    raw_close(&holder);
    samples_free(&waits);
}
