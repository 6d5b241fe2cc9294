/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The table and its sentences. */
#include "report.h"

#include "terminal.h"

#include <inttypes.h>
#include <stdio.h>

struct text {
    char chars[32];
};

/* 12345678 -> "12,345,678". */
static struct text text_number(int64_t number)
{
    struct text digits, text = {""};
    size_t length = 0;

    int count = snprintf(digits.chars, sizeof(digits.chars), "%" PRId64, number);
    for (int i = 0; i < count; i++) {
        bool is_group = i > 0 && digits.chars[i - 1] != '-' && (count - i) % 3 == 0;
        if (is_group)
            text.chars[length++] = ',';
        text.chars[length++] = digits.chars[i];
    }
    return text;
}

/* In milliseconds, with as many digits as say something. */
static struct text text_time(int64_t us)
{
    struct text text, whole = text_number((us + 500) / 1000);

    if (us < 100000)
        snprintf(text.chars, sizeof(text.chars), "%.*f ms", us < 10000 ? 2 : 1, (double)us / 1000);
    else
        snprintf(text.chars, sizeof(text.chars), "%.26s ms", whole.chars);
    return text;
}

static struct text text_share(const struct sale *sale, int process)
{
    struct text text;
    double all = (double)(sale->sold + sale->refused);
    double share = all > 0 ? 100 * (double)sale->answered[process] / all : 0;

    snprintf(text.chars, sizeof(text.chars), "%.1f %%", share);
    return text;
}

void report_intro(const struct options *options, const struct sale *sale)
{
    long wanted = 0;

    for (uint32_t i = 0; i < sale->orders; i++)
        wanted += sale_quantity(i);
    printf("%s units are in stock; customers want %s, in %s orders.\n",
           text_number(options->stock).chars, text_number(wanted).chars,
           text_number(sale->orders).chars);
    printf("%ld process%s of %ld thread%s serve%s them: read the stock, decide, write.\n\n",
           options->processes, options->processes == 1 ? "" : "es", options->threads,
           options->threads == 1 ? "" : "s", options->processes == 1 ? "s" : "");
}

static void report_row(const char *label, struct text without, struct text with, const char *remark)
{
    printf("  %-22s %16s %16s%s\n", label, without.chars, with.chars, remark);
}

static void report_numbers(const char *label, int64_t without, int64_t with)
{
    report_row(label, text_number(without), text_number(with), "");
}

/* What only the sale with the lock has. */
static void report_with(const char *label, struct text with)
{
    report_row(label, (struct text){"-"}, with, "");
}

static const char *report_judge(long oversold)
{
    return terminal_style(oversold > 0 ? TERMINAL_BAD : TERMINAL_GOOD);
}

static void report_oversold(const struct report *report)
{
    long without = sale_oversold(report->without, report->options->stock);
    long with = sale_oversold(report->with, report->options->stock);

    printf("  %-22s %s%16s%s %s%16s%s\n", "oversold", report_judge(without),
           text_number(without).chars, terminal_end(), report_judge(with), text_number(with).chars,
           terminal_end());
}

static int64_t report_unanswered(const struct sale *sale)
{
    return (int64_t)sale->orders - sale->sold - sale->refused;
}

static int64_t report_locks_per_second(const struct sale *sale)
{
    return (int64_t)sale->waits * 1000000 / (sale_duration_us(sale) - sale_pause_us(sale));
}

static void report_shares(const struct report *report)
{
    char label[32];

    for (int i = 0; i < report->options->processes; i++) {
        snprintf(label, sizeof(label), "share of process %d", i + 1);
        report_row(label, text_share(report->without, i), text_share(report->with, i),
                   i == report->with->killed_process ? "  killed" : "");
    }
}

static void report_rows(const struct report *report)
{
    const struct sale *without = report->without, *with = report->with;

    report_numbers("sold", without->sold_in_redis, with->sold_in_redis);
    report_numbers("left", without->left_in_redis, with->left_in_redis);
    report_oversold(report);
    report_numbers("orders refused", without->refused, with->refused);
    report_numbers("orders unanswered", report_unanswered(without), report_unanswered(with));
    report_row("duration", text_time(sale_duration_us(without)), text_time(sale_duration_us(with)),
               "");
    report_with("locks per second", text_number(report_locks_per_second(with)));
    report_with("wait p50", text_time(sale_wait_us(with, 0.5)));
    report_with("wait p99", text_time(sale_wait_us(with, 0.99)));
    report_with("wait max", text_time(sale_wait_us(with, 1)));
    if (with->lost > 0)
        report_with("holds lost", text_number(with->lost));
    if (with->in_doubt > 0)
        report_with("releases in doubt", text_number(with->in_doubt));
    if (with->killed_process >= 0)
        report_with("killed: lease left", text_time(with->lease_left_ms * 1000));
    if (with->killed_us != 0)
        report_with("killed: others waited", text_time(sale_pause_us(with)));
    report_shares(report);
}

static void report_kill(const struct sale *sale)
{
    if (sale->killed_us != 0 && sale->killed_process < 0)
        printf("The lock's server was killed with SIGKILL while a seller held the lock. Sellers of "
               "his\nprocess went on as long as the lease lasted; all others waited for the next "
               "server.\nThe pause is not in the locks per second.\n\n");
    if (sale->killed_process < 0)
        return;
    printf("Process %d was killed with SIGKILL right after it had got the lock. The others waited\n"
           "for its lease to end, and went on. The pause is not in the locks per second.\n\n",
           sale->killed_process + 1);
}

static void report_verdict(const struct report *report)
{
    const struct sale *with = report->with;

    if (!sale_is_right(with, report->options->stock))
        printf("With the lock %s units were sold and %s are left, of %s: that is wrong.\n\n",
               text_number(with->sold_in_redis).chars, text_number(with->left_in_redis).chars,
               text_number(report->options->stock).chars);
}

void report_table(const struct report *report)
{
    printf("  %s%-22s %16s %16s%s\n", terminal_style(TERMINAL_BOLD), "", "without a lock",
           "with hirelock", terminal_end());
    report_rows(report);
    putchar('\n');
    report_kill(report->with);
    report_verdict(report);
    printf("without a lock: oversold %ld\n",
           sale_oversold(report->without, report->options->stock));
    printf("with hirelock: oversold %ld\n", sale_oversold(report->with, report->options->stock));
}
