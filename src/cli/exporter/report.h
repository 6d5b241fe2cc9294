/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The metrics of the server's side, as text for Prometheus: docs/metrics.md lists them. Pure. */
#ifndef CLI_EXPORTER_REPORT_H
#define CLI_EXPORTER_REPORT_H

#include "base/exposition.h"
#include "cli/exporter/census.h"
#include "cli/exporter/nodes.h"

/* What the surveys were, up to now. */
struct exporter_surveys {
    bool is_up;                 /* the last one succeeded */
    uint64_t succeeded, failed; /* how many */
    int64_t age_ms;             /* of the last one that succeeded; -1: there was none */
    int64_t took_ms;            /* the last one; -1: there was none */
};

void exporter_report_surveys(struct hli_exposition *text, const struct exporter_surveys *surveys);
void exporter_report_census(struct hli_exposition *text, const struct exporter_census *census);
void exporter_report_nodes(struct hli_exposition *text, const struct exporter_nodes *nodes);

#endif
