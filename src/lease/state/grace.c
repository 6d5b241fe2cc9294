/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Graces: what of the server's term a name and a hold have to know. */
#include "lease/state/grace.h"

#include "base/error.h"
#include "lease/state/waiters.h"

#include <inttypes.h>

static const struct hli_term *grace_of(const struct hli_name *name)
{
    return hli_link_term(hli_name_link(name));
}

unsigned hli_grace_term(const struct hli_name *name)
{
    bool is_on = HLI_GRACE_IS_ON(name->client) && name->kind->reclaim != 0;

    return is_on ? atomic_load(&grace_of(name)->number) : 0;
}

hli_ns hli_grace_until(const struct hli_name *name, hli_ns now)
{
    bool is_on = HLI_GRACE_IS_ON(name->client) && name->kind->reclaim != 0;
    hli_ns until = is_on ? atomic_load(&grace_of(name)->grace_until) : 0;

    return until > now ? until : 0;
}

int64_t hli_grace_lasts_ms(const struct hli_name *name, hli_ns until, hli_ns now)
{
    hli_ns lease_ends = until + hli_lease_margin(hli_ms_left(now, until));
    hli_ns ends = hli_earlier(lease_ends, hli_grace_until(name, now));

    return ends > now ? ends / 1000000 + atomic_load(&grace_of(name)->ahead_ms) : 0;
}

bool hli_grace_is_met(const struct hli_tenure *tenure)
{
    return !HLI_GRACE_IS_ON(tenure->name->client) || tenure->term == hli_grace_term(tenure->name);
}

void hli_grace_meet(struct hli_turn *turn, struct hli_tenure *tenure)
{
    hli_ns needed = HLI_MS(turn->name->client->settings.old_master_ms);

    if (hli_grace_is_met(tenure))
        return;
    if (hli_grace_until(turn->name, turn->now) != 0 &&
        hli_hold_validity(tenure) - turn->now < needed)
        tenure->is_final = true;
    if (tenure->is_final && tenure->reentry) /* it waits for a longer lease */
        hli_waiters_fail(turn, tenure->reentry, HL_ESERVER, HLI_GRACE_IS_FINAL);
    tenure->is_doubted = !tenure->is_final;
    tenure->renew_at = turn->now;
}

bool hli_grace_is_missed(const struct hli_tenure *tenure, hli_ns now)
{
    return !hli_grace_is_met(tenure) && hli_grace_until(tenure->name, now) != 0 &&
           !tenure->is_release_unsure;
}

static int64_t grace_longest_ms(const hl_client *client)
{
    return client->settings.failover_grace_ms - client->settings.old_master_ms;
}

int64_t hli_grace_at_most(const hl_client *client, int64_t lease_ms)
{
    bool is_longer = HLI_GRACE_IS_ON(client) && lease_ms > grace_longest_ms(client);

    return is_longer ? grace_longest_ms(client) : lease_ms;
}

int hli_grace_check(const hl_client *client, const char *what, int64_t ms, hl_error *err)
{
    if (!HLI_GRACE_IS_ON(client) || ms <= grace_longest_ms(client))
        return 0;
    return hli_fail(err, HL_EINVAL,
                    "%s is longer than %" PRId64
                    " ms: failover_grace_ms, less old_master_ms; after a "
                    "failover the lock would be free before the hold ends",
                    what, grace_longest_ms(client));
}
