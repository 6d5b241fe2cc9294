/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The report: every figure that was measured, with its target where there is one; printed as it
 * comes, and written as JSON at the end. */
#ifndef HL_BENCH_REPORT_H
#define HL_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum { REPORT_FIGURES = 512 };

struct figure {
    char name[96];
    double value;
    const char *unit;
    double target; /* with one of the two below */
    bool at_most, at_least;
};

struct report {
    struct figure figure[REPORT_FIGURES];
    size_t count;
    size_t missed;
    char machine[1024]; /* JSON members, without the braces */
};

void report_heading(const char *text);
void report_figure(struct report *report, const char *name, double value, const char *unit);
void report_at_most(struct report *report, const char *name, double value, const char *unit,
                    double target);
void report_at_least(struct report *report, const char *name, double value, const char *unit,
                     double target);

/* Describes this machine, the server's version, and the command line. */
void report_machine(struct report *report, const char *server_version, char *const *argv);

void report_write_json(const struct report *report, const char *path);

/* The name of a figure, "<prefix>, <text>: <what>", until the next call. */
const char *report_name(const char *prefix, const char *text, const char *what);

#endif
