/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Restarts: the two times from which a server may be asked. */
#include "lease/acquire/restart.h"

#include "lease/acquire/ask.h"
#include "lease/acquire/busy.h"
#include "lease/state/contention.h"

#include <stdio.h>

enum {
    RESTART_LOOK_MS = 2,           /* how often to look if the server has said what it keeps */
    RESTART_AGE_MAX_MS = INT32_MAX /* older data are as good */
};

/* Of no data. */
static const int64_t restart_never_ms = INT64_C(1) << 50;

static hli_ns restart_until(hli_ns began, int64_t restart_ms)
{
    if (began == 0 || began == HLI_NEVER)
        return began;
    return hli_after_ms(began, restart_ms) + hli_lease_margin(restart_ms);
}

static hli_ns restart_server_until(const struct hli_name *name, int64_t restart_ms)
{
    return restart_until(hli_link_server_began(hli_name_link(name)), restart_ms);
}

static hli_ns restart_data_until(const struct hli_name *name, int64_t restart_ms)
{
    return restart_until(hli_link_data_began(hli_name_link(name)), restart_ms);
}

bool hli_restart_delays(const struct hli_name *name, int64_t restart_ms)
{
    hli_ns now = hli_now(), until = restart_server_until(name, restart_ms);

    return restart_ms > 0 && hli_link_is_up(hli_name_link(name)) &&
           ((now < until && until != HLI_NEVER) || now < restart_data_until(name, restart_ms));
}

/* False of a name whose server is not asked, and of one that asks without a delay. */
static bool restart_matters(const struct hli_turn *turn)
{
    return !turn->name->kind->quorum && TAILQ_FIRST(&turn->name->waiters)->mode.restart_ms > 0;
}

/* In a cluster it would lie in one slot. So there nobody believes a configuration, which says what
 * a restart has forgotten only if the data are those from before. */
static bool restart_has_marker(const struct hli_turn *turn)
{
    return !turn->name->client->wording->is_for_cluster;
}

static void restart_tell(struct hli_turn *turn, hli_ns until)
{
    char text[HLI_WHERE_SIZE + 128], where[HLI_WHERE_SIZE];
    int code = until == HLI_NEVER ? HL_EDENIED : HL_ESERVER;

    hli_link_where(hli_name_link(turn->name), where);
    if (code == HL_EDENIED)
        snprintf(text, sizeof(text),
                 "%s does not tell since when it runs, and may have forgotten a holder: its user "
                 "needs +info",
                 where);
    else
        snprintf(text, sizeof(text),
                 "%s restarted or lost its data, and may have forgotten a holder: it is asked in "
                 "%.1f s",
                 where, (double)(until - turn->now) / 1e9);
    hli_contention_note_problem(turn->name, code, text);
    turn->name->current->ask_at = hli_earlier(until, hli_busy_poll_at(turn));
    hli_ask_fail_for_now(turn, code, text);
}

/* What it keeps is of interest while it is young. */
static enum hli_link_keeps restart_keeps(const struct hli_turn *turn, hli_ns server_until)
{
    if (turn->now >= server_until)
        return HLI_KEEPS_ALL;
    return restart_has_marker(turn) ? hli_link_keeps(hli_name_link(turn->name)) : HLI_KEEPS_SOME;
}

bool hli_restart_forbids(struct hli_turn *turn)
{
    if (!restart_matters(turn))
        return false;
    int64_t restart_ms = TAILQ_FIRST(&turn->name->waiters)->mode.restart_ms;
    hli_ns server_until = restart_server_until(turn->name, restart_ms);
    hli_ns until = restart_data_until(turn->name, restart_ms);
    enum hli_link_keeps keeps = restart_keeps(turn, server_until);

    if (keeps == HLI_KEEPS_UNKNOWN || keeps == HLI_KEEPS_ASKED) {
        turn->name->current->ask_at = hli_after_ms(turn->now, RESTART_LOOK_MS);
        return true;
    }
    if (keeps == HLI_KEEPS_SOME)
        until = hli_later(until, server_until);
    if (turn->now < until)
        restart_tell(turn, until);
    return turn->now < until;
}

bool hli_restart_looks_first(const struct hli_turn *turn)
{
    if (!restart_matters(turn) || !restart_has_marker(turn))
        return false;
    int64_t restart_ms = TAILQ_FIRST(&turn->name->waiters)->mode.restart_ms;
    return hli_link_data_began(hli_name_link(turn->name)) == 0 &&
           turn->now < restart_server_until(turn->name, restart_ms);
}

int64_t hli_restart_young_ms(const struct hli_turn *turn)
{
    if (!restart_matters(turn) || !restart_has_marker(turn))
        return 0;
    int64_t restart_ms = TAILQ_FIRST(&turn->name->waiters)->mode.restart_ms;
    return hli_restart_looks_first(turn)
               ? restart_never_ms
               : restart_ms + hli_lease_margin(restart_ms) / HLI_MS(1) + 1;
}

/* The age was taken before the answer came, so the data are no younger. */
bool hli_restart_told_age(struct hli_turn *turn, const struct hli_answer *answer)
{
    int64_t age_ms = 0;

    if (!restart_matters(turn) || !hli_reply_integer_at(answer->reply, 1, &age_ms))
        return false;
    if (age_ms < 0 || age_ms > RESTART_AGE_MAX_MS)
        age_ms = age_ms < 0 ? 0 : RESTART_AGE_MAX_MS;
    hli_ns began = turn->now - HLI_MS(age_ms);
    hli_link_note_data(hli_name_link(turn->name), began != 0 ? began : 1);
    turn->name->asked_at = 0;
    turn->name->current->ask_at = hli_after_ms(turn->now, RESTART_LOOK_MS);
    hli_restart_forbids(turn);
    hli_ask_abandon(turn); /* if only tries were there */
    return true;
}
