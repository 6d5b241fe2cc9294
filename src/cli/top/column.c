/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/column.h"

#include "cli/escape.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

static void column_write_name(const struct top_record *record, const struct top_moment *moment,
                              char text[TOP_TEXT])
{
    json_object *shown =
        cli_escaped(record->name + moment->prefix, record->length - moment->prefix);

    snprintf(text, TOP_TEXT, "%s", shown ? json_object_get_string(shown) : "");
    json_object_put(shown);
}

static void column_write_kind(const struct top_record *record, const struct top_moment *moment,
                              char text[TOP_TEXT])
{
    (void)moment;
    snprintf(text, TOP_TEXT, "%s", top_record_kind(record));
}

static void column_write_holder(const struct top_record *record, const struct top_moment *moment,
                                char text[TOP_TEXT])
{
    (void)moment;
    snprintf(text, TOP_TEXT, "%s",
             record->is_free  ? "free"
             : record->holder ? record->holder
                              : "?");
}

static void column_write_time(int64_t ms, bool is_least, char text[TOP_TEXT])
{
    char time[CLI_MS] = "";

    if (ms >= 0)
        cli_write_ms(ms, time);
    snprintf(text, TOP_TEXT, "%s%s", is_least ? ">=" : "", time);
}

static void column_write_held(const struct top_record *record, const struct top_moment *moment,
                              char text[TOP_TEXT])
{
    struct top_figure held_ms = top_record_held_ms(record, moment->now_ms);

    column_write_time((int64_t)held_ms.value, held_ms.is_least, text);
}

static void column_write_longest(const struct top_record *record, const struct top_moment *moment,
                                 char text[TOP_TEXT])
{
    column_write_time(top_record_longest_ms(record, moment->now_ms), false, text);
}

static void column_write_lease(const struct top_record *record, const struct top_moment *moment,
                               char text[TOP_TEXT])
{
    int64_t left_ms = top_record_lease_ms(record, moment->now_ms);
    char time[CLI_MS] = "";

    if (left_ms > -2)
        cli_write_ms(left_ms, time);
    snprintf(text, TOP_TEXT, "%s", time);
}

static void column_write_waiters(const struct top_record *record, const struct top_moment *moment,
                                 char text[TOP_TEXT])
{
    (void)moment;
    snprintf(text, TOP_TEXT, "%u", record->waiters);
}

static void column_write_owners(const struct top_record *record, const struct top_moment *moment,
                                char text[TOP_TEXT])
{
    struct top_figure pace = top_record_pace(record);

    (void)moment;
    text[0] = '\0';
    if (pace.value >= 0)
        snprintf(text, TOP_TEXT, "%s%.*f", pace.is_least ? ">=" : "", pace.value < 100 ? 1 : 0,
                 pace.value);
}

static int column_compare_numbers(double left, double right)
{
    return (left > right) - (left < right);
}

static int column_compare_names(const struct top_record *left, const struct top_record *right,
                                const struct top_moment *moment)
{
    size_t least = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->name, right->name, least);

    (void)moment;
    return order != 0 ? order : (left->length > right->length) - (left->length < right->length);
}

static int column_compare_kinds(const struct top_record *left, const struct top_record *right,
                                const struct top_moment *moment)
{
    (void)moment;
    return strcmp(top_record_kind(left), top_record_kind(right));
}

/* Those that nobody holds come last. */
static int column_compare_holders(const struct top_record *left, const struct top_record *right,
                                  const struct top_moment *moment)
{
    (void)moment;
    if (!left->holder || !right->holder)
        return !left->holder - !right->holder;
    return strcmp(left->holder, right->holder);
}

static int column_compare_held(const struct top_record *left, const struct top_record *right,
                               const struct top_moment *moment)
{
    return column_compare_numbers(top_record_held_ms(right, moment->now_ms).value,
                                  top_record_held_ms(left, moment->now_ms).value);
}

/* The one that ends first; then those without an end, and then the free ones. */
static int column_compare_leases(const struct top_record *left, const struct top_record *right,
                                 const struct top_moment *moment)
{
    uint64_t first = (uint64_t)top_record_lease_ms(left, moment->now_ms);
    uint64_t second = (uint64_t)top_record_lease_ms(right, moment->now_ms);

    if (left->is_free != right->is_free)
        return left->is_free - right->is_free;
    return (first > second) - (first < second);
}

static int column_compare_waiters(const struct top_record *left, const struct top_record *right,
                                  const struct top_moment *moment)
{
    (void)moment;
    return (left->waiters < right->waiters) - (left->waiters > right->waiters);
}

static int column_compare_longest(const struct top_record *left, const struct top_record *right,
                                  const struct top_moment *moment)
{
    return column_compare_numbers((double)top_record_longest_ms(right, moment->now_ms),
                                  (double)top_record_longest_ms(left, moment->now_ms));
}

/* One that is not known yet counts as none: rows do not move when it becomes known. */
static double column_pace(const struct top_record *record)
{
    double pace = top_record_pace(record).value;

    return pace > 0 ? pace : 0;
}

static int column_compare_owners(const struct top_record *left, const struct top_record *right,
                                 const struct top_moment *moment)
{
    (void)moment;
    return column_compare_numbers(column_pace(right), column_pace(left));
}

const struct top_column_kind top_columns[TOP_COLUMNS] = {
    {"name", "NAME", 12, true, false, 0, column_write_name, column_compare_names},
    {"kind", "KIND", 7, false, false, 7, column_write_kind, column_compare_kinds},
    {"holder", "HOLDER", 10, true, false, 2, column_write_holder, column_compare_holders},
    {"held", "HELD", 8, false, true, 5, column_write_held, column_compare_held},
    {"lease", "LEASE", 6, false, true, 6, column_write_lease, column_compare_leases},
    {"waiters", "WAITERS", 7, false, true, 1, column_write_waiters, column_compare_waiters},
    {"longest", "LONGEST", 8, false, true, 3, column_write_longest, column_compare_longest},
    {"owners", "OWNERS/S", 8, false, true, 4, column_write_owners, column_compare_owners}};

enum top_column top_column_find(const char *key)
{
    for (size_t i = 0; i < TOP_COLUMNS; i++)
        if (strcmp(top_columns[i].key, key) == 0)
            return (enum top_column)i;
    return TOP_COLUMNS;
}

int top_column_compare(enum top_column column, const struct top_record *left,
                       const struct top_record *right, const struct top_moment *moment)
{
    static const enum top_column then[] = {TOP_WAITERS, TOP_LONGEST, TOP_OWNERS, TOP_NAME};
    int order = top_columns[column].compare(left, right, moment);

    for (size_t i = 0; order == 0 && i < sizeof(then) / sizeof(then[0]); i++)
        order = top_columns[then[i]].compare(left, right, moment);
    return order;
}
