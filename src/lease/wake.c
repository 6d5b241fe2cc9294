/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Waking: what comes from outside and makes a name ask again, or let go of its subscription. */
#include "lease/wake.h"

#include "lease/ask.h"
#include "lease/contest.h"
#include "lease/deepen.h"
#include "lease/release.h"

enum { WAKE_LINGER_MS = 5000 }; /* how long a subscription outlives its last waiter */

/* After a message that told nothing new, whatever else may be a reason to ask has to wait a little,
 * an old timer too. */
static void wake_unless_quiet(struct hli_turn *turn)
{
    const struct hli_contest *contest = turn->name->contest;

    if (hli_tenure_is_contending(turn->name->current) && contest &&
        turn->now < contest->quiet_until)
        hli_turn_timer(turn, contest->quiet_until);
    else
        hli_ask_go(turn);
}

/* A release was published, or somebody pretends so. */
bool hli_wake_on_message(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    name->contest->heard_at = turn.now;
    const struct hli_tenure *tenure = name->current;
    bool sleeps = hli_tenure_is_contending(tenure) && tenure->asking == HLI_ASKING_NOTHING;
    if (hli_tenure_is_contending(tenure))
        wake_unless_quiet(&turn);
    bool is_asked = sleeps && name->current == tenure && tenure->asking != HLI_ASKING_NOTHING;
    hli_turn_end(&turn);
    return is_asked;
}

/* A release lets Redisson's waiters go first. */
void hli_wake_on_courtesy(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    name->contest->has_strangers = true;
    hli_contest_stand_back(name->contest, turn.now);
    hli_turn_end(&turn);
}

void hli_wake_on_confirmed(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    name->contest->confirmed_at = turn.now;
    if (hli_tenure_is_contending(name->current))
        hli_ask_go(&turn);
    hli_turn_end(&turn);
}

/* One whose subscription another name of this process shares, or will never need again, does not
 * linger. */
static hli_ns wake_lingers_until(const struct hli_name *name)
{
    if (name->kind->is_used_once || hli_channel_is_shared(&name->contest->channel))
        return 0;
    return hli_after_ms(hli_later(name->contest->idle_since, name->answered_at), WAKE_LINGER_MS);
}

/* The subscription of a name for which nobody waits: has it been idle for long enough? */
static bool wake_stops_listening(struct hli_turn *turn)
{
    const struct hli_name *name = turn->name;

    if (!name->contest || !TAILQ_EMPTY(&name->waiters))
        return false;
    if (turn->now < wake_lingers_until(name))
        hli_turn_timer(turn, wake_lingers_until(name));
    return turn->now >= wake_lingers_until(name);
}

void hli_wake_on_timer(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    hli_release_retry(&turn, false);
    if (name->current && name->current->state == HLI_TENURE_OWN)
        hli_deepen_go(&turn, name->current);
    wake_unless_quiet(&turn);
    bool drops = wake_stops_listening(&turn);
    if (drops)
        name->contest->confirmed_at = 0;
    hli_turn_end(&turn);
    if (drops)
        hli_contest_stop_listening(name->contest);
}

/* What was granted over the old link cannot be judged any more; what is held is renewed at once,
 * for the server may be another; what lingers is let go. */
static void wake_on_new_link(struct hli_turn *turn, struct hli_tenure *tenure)
{
    tenure->anchor_at = 0;
    tenure->busy_stamp = 0;
    if (tenure->state == HLI_TENURE_IDLE) {
        hli_release_quietly(turn, tenure);
    } else if (tenure->state == HLI_TENURE_OWN) {
        tenure->word_at = 0;
        tenure->renew_at = turn->now;
        hli_turn_watch(turn, tenure, turn->now);
        hli_deepen_go(turn, tenure);
    }
}

/* Releases go first, for a new tenure asks behind the old one's release; then whoever waits asks
 * again. */
void hli_wake_on_link_up(struct hli_name *name)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    hli_release_retry(&turn, true);
    if (name->current)
        wake_on_new_link(&turn, name->current);
    hli_ask_go(&turn);
    hli_turn_end(&turn);
}

void hli_wake_on_link_failed(struct hli_name *name, const hl_error *err)
{
    struct hli_turn turn;

    hli_turn_begin(&turn, name);
    if (!TAILQ_EMPTY(&name->waiters)) {
        hli_contest_note_problem(name, err->code, err->text);
        if (err->code == HL_EDENIED)
            hli_ask_fail_all(&turn, err->code, err->text);
    }
    hli_turn_end(&turn);
}
