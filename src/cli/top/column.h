/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The columns of the table: what each says of a record, how wide it is, and how it sorts. */
#ifndef CLI_TOP_COLUMN_H
#define CLI_TOP_COLUMN_H

#include "cli/top/record.h"

enum { TOP_TEXT = 1024 }; /* of a place in the table */

/* In their order on the screen. */
enum top_column {
    TOP_NAME,
    TOP_KIND,
    TOP_HOLDER,
    TOP_HELD,
    TOP_LEASE,
    TOP_WAITERS,
    TOP_LONGEST,
    TOP_OWNERS,
    TOP_COLUMNS
};

/* By what is compared: the time of now. */
struct top_moment {
    int64_t now_ms;
    size_t prefix; /* bytes of each name that are not shown */
};

struct top_column_kind {
    const char *key;   /* for --sort */
    const char *title; /* on the screen */
    int width;         /* the least, where it is wider with its text */
    bool is_wide;      /* gets what is left of the line */
    bool is_number;    /* set to the right */
    int rank;          /* the most needed has 0: the others make room for it */
    /* UTF-8 without control characters (escape.h). */
    void (*write)(const struct top_record *record, const struct top_moment *moment,
                  char text[TOP_TEXT]);
    /* Below 0: the left one is to be seen first. */
    int (*compare)(const struct top_record *left, const struct top_record *right,
                   const struct top_moment *moment);
};

extern const struct top_column_kind top_columns[TOP_COLUMNS];

/* TOP_COLUMNS: there is no such key. */
enum top_column top_column_find(const char *key);

/* By a column, and then the most contended first, and then by name. */
int top_column_compare(enum top_column column, const struct top_record *left,
                       const struct top_record *right, const struct top_moment *moment);

#endif
