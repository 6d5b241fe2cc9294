/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lines about outages. */
#include "route/outage.h"

#include <stdarg.h>
#include <stdio.h>

enum { OUTAGE_WARN_MS = 60 * 1000 };

static void outage_log(const struct hli_topology_listener *listener, hl_log_level level,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

static void outage_log(const struct hli_topology_listener *listener, hl_log_level level,
                       const char *format, ...)
{
    char text[sizeof(((hl_error *)0)->text) + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    listener->log(level, text, listener->arg);
}

void hli_outage_begin(struct hli_outage *outage, const struct hli_topology_listener *listener,
                      const struct hli_link *link, const hl_error *err)
{
    if (!hli_link_is_whole(link))
        return;
    *outage = (struct hli_outage){.since = hli_now()};
    outage_log(listener, HL_LOG_WARN, "connection lost: %s", err->text);
}

void hli_outage_go_on(struct hli_outage *outage, const struct hli_topology_listener *listener,
                      const hl_error *err)
{
    hli_ns now = hli_now();
    bool warns = outage->attempts == 0 || now >= hli_after_ms(outage->warned_at, OUTAGE_WARN_MS);

    if (outage->since == 0)
        outage->since = now;
    outage->attempts++;
    if (warns)
        outage->warned_at = now;
    outage_log(listener, warns ? HL_LOG_WARN : HL_LOG_DEBUG, "no connection: %s", err->text);
}

void hli_outage_end(struct hli_outage *outage, const struct hli_topology_listener *listener,
                    struct hli_link *link)
{
    char where[HLI_WHERE_SIZE];

    if (!hli_link_is_whole(link))
        return;
    hli_link_where(link, where);
    if (outage->since == 0)
        outage_log(listener, HL_LOG_INFO, "connected to %s", where);
    else
        outage_log(listener, HL_LOG_WARN, "connected again to %s after %.1f s, attempts: %u", where,
                   (double)(hli_now() - outage->since) / 1e9, outage->attempts + 1);
    *outage = (struct hli_outage){0};
}
