/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Many processes sell one stock, kept in Redis by read - decide - write: first as it is, and they
 * oversell; then with a lock around it, and they do not, even when one of them dies inside.
 */
#include "crew.h"
#include "options.h"
#include "report.h"
#include "sale.h"
#include "shop.h"
#include "terminal.h"

#include <signal.h>
#include <stdio.h>

enum { EXIT_RIGHT = 0, EXIT_OVERSOLD = 1, EXIT_NOT_RUN = 2, EXIT_BY_SIGNAL = 130 };

struct demo {
    const struct options *options;
    struct shop *shop;
    struct sale *without, *with;
};

static int demo_fail(const char *why)
{
    fprintf(stderr, "stock_deduction: %s\n", why);
    return EXIT_NOT_RUN;
}

/* One sale, from a full shop to its figures. */
static int demo_sell(const struct demo *demo, struct sale *sale)
{
    long left = 0, sold = 0;

    if (!shop_fill(demo->shop, demo->options->stock))
        return demo_fail(shop_error(demo->shop));
    enum crew_verdict verdict = crew_run(demo->options, sale, terminal_progress);
    terminal_clear_progress();
    bool is_counted = shop_count(demo->shop, &left, &sold) && shop_clear(demo->shop);
    if (verdict == CREW_INTERRUPTED)
        return EXIT_BY_SIGNAL;
    if (verdict == CREW_FAILED)
        return EXIT_NOT_RUN;
    if (!is_counted)
        return demo_fail(shop_error(demo->shop));
    sale_close(sale, left, sold);
    return EXIT_RIGHT;
}

static int demo_report(const struct demo *demo)
{
    struct report report = {demo->options, demo->without, demo->with};

    if (demo->options->json)
        report_json(&report);
    else
        report_table(&report);
    return sale_is_right(demo->with, demo->options->stock) ? EXIT_RIGHT : EXIT_OVERSOLD;
}

static int demo_run(struct demo *demo)
{
    demo->without = sale_new(demo->options, false);
    demo->with = sale_new(demo->options, true);
    demo->shop = shop_new();
    if (!demo->without || !demo->with || !demo->shop)
        return demo_fail("out of memory");
    if (!shop_open(demo->shop, demo->options->url, demo->with->id))
        return demo_fail(shop_error(demo->shop));
    if (!demo->options->json)
        report_intro(demo->options, demo->with);
    int code = demo_sell(demo, demo->without);
    if (code == EXIT_RIGHT)
        code = demo_sell(demo, demo->with);
    return code == EXIT_RIGHT ? demo_report(demo) : code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct demo demo = {.options = &options};
    enum options_verdict verdict = options_read(&options, argc, argv);

    if (verdict != OPTIONS_RUN)
        return verdict == OPTIONS_HELP ? EXIT_RIGHT : EXIT_NOT_RUN;
    signal(SIGPIPE, SIG_IGN); /* hiredis says it by a return code */
    crew_catch_signals();
    int code = demo_run(&demo);
    shop_free(demo.shop);
    sale_free(demo.without);
    sale_free(demo.with);
    return code;
}
