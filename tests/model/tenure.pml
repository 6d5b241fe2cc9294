/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One process's tenure from the inside: the lock goes from thread to thread, rests with nobody
 * between, and is given up, while renewals and words about other waiters are on their way. Once the
 * holder asks for a longer lease. The rest of the world is whoever takes a key that is free. The
 * link breaks once, and what was not run yet runs late, or never.
 *
 *   BOUNCES DROPS LEASE END   as in grant.pml
 *   LONG                      the longer lease
 *
 * Broken on purpose:
 *   TRANSFER         every thread has a field of its own, and a pass is a command
 *   LATE_FAREWELL    the tenure is kept for the next thread until its release is answered
 *   REVIVAL          an answer that comes too late makes a lost hold live again
 *   EARLY_LEASE      a longer lease counts when it is asked for, and not when it is answered
 *   LATE_LEASE       it counts from the answer, and not from when it was asked for
 */
#ifndef BOUNCES
#define BOUNCES 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef LEASE
#define LEASE 3
#endif
#ifndef LONG
#define LONG 5
#endif
#ifndef END
#define END 6
#endif
#define PIPE 4
#define PASSES 3
#define STRANGER 99

mtype = { renew, prolong, release, transfer };
mtype = { yes, no, bounced };
mtype = { held, idle, lost, gone };

byte now;
byte holder = 1, ends = LEASE; /* in Redis; field 0: no key */

/* command, field, new field, when sent */
chan command = [PIPE] of { mtype, byte, byte, byte };
/* command, verdict, field, when sent */
chan answer = [PIPE] of { mtype, mtype, byte, byte };
chan late = [2] of { mtype, byte, byte };
byte bounces = BOUNCES, drops = DROPS;

byte field = 1, valid = LEASE, passes; /* valid: until when we think it is ours, 0: not at all */
mtype state = held;
bool renewing, prolonging, was_prolonged;
bool asked_to_release, is_released, was_lost, has_revived, false_loss;

#define STANDS(f) (holder == (f) && now < ends)
#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define LEASE_OF(o) ((o) == prolong -> LONG : LEASE)

hidden mtype op, verdict;
hidden byte f, g, sent;

/* ---- the server, and the others ---- */

inline run_script()
{
    if
    /* Lua: lock_renew.lua, lock_keep.lua */
    :: (op == renew || op == prolong) && STANDS(f) ->
        ends = LATER(ends, now + LEASE_OF(op)); verdict = yes
    /* Lua: lock_release.lua */
    :: op == release && STANDS(f) -> holder = 0; ends = 0; verdict = yes
#ifdef TRANSFER
    :: op == transfer && (STANDS(f) || STANDS(g)) ->
        holder = g; ends = LATER(ends, now + LEASE); verdict = yes
#endif
    :: else -> verdict = no
    fi
}

active proctype server()
{
end:
    do
    :: atomic {
        nempty(command) && nfull(answer) ->
        command?op, f, g, sent;
        if
        :: bounces > 0 -> bounces--; verdict = bounced
        :: skip; run_script()
        fi;
        answer!op, verdict, f, sent
    }
    :: atomic { nempty(late) -> late?op, f, g; run_script() }
    :: atomic { holder == 0 -> holder = STRANGER; ends = now + LEASE }
    od
}

active proctype clock()
{
end:
    do
    :: atomic {
        now < END -> now++;
        if
        :: holder != 0 && now >= ends -> holder = 0; ends = 0
        :: else -> skip
        fi;
        if /* C: loss_by_clock, hli_keep_plan */
        :: valid != 0 && now >= valid -> valid = 0; was_lost = (state == held)
        :: else -> skip
        fi
    }
    od
}

/* ---- the process ---- */

#ifdef TRANSFER
chan unanswered = [PASSES] of { byte, byte };
#endif

inline post(o, x, y)
{
    command!o, x, y, now
}

/* Nothing is sent, nothing can be late: who is inside is a matter of this process alone. */
inline change_inside()
{
    passes++;
#ifdef TRANSFER
    post(transfer, field, passes + 1);
    unanswered!field, passes + 1;
    field = passes + 1;
#endif
    renewing = false
}

inline say_farewell() /* C: hli_releasing_begin */
{
#ifndef LATE_FAREWELL
    valid = 0; state = gone;
#endif
    asked_to_release = true;
    post(release, field, 0)
}

inline lose() /* C: hli_loss_declare */
{
    false_loss = false_loss || (holder != 0 && holder != STRANGER && now < valid);
    was_lost = (state == held); /* never, unless broken */
    valid = 0                   /* never, unless broken */
}

/* Not even a good answer brings back what is over by the clock. */
inline extend() /* C: renewal_succeeded, hli_keep_answered, hli_tenure_extend */
{
#ifdef LATE_LEASE
    sent = (op == prolong -> now : sent);
#endif
    if
#ifdef REVIVAL
    :: valid == 0 && !asked_to_release && now < sent + LEASE_OF(op) ->
        has_revived = was_lost; valid = sent + LEASE_OF(op)
#endif
    :: valid != 0 -> valid = LATER(valid, sent + LEASE_OF(op))
    :: else -> skip
    fi
}

/* The call is over, whatever the answer says. */
inline end_prolonging() /* C: hli_lease_change_end */
{
    prolonging = prolonging && op != prolong
}

inline take_answer()
{
    answer?op, verdict, f, sent;
    if
    :: verdict == bounced -> skip
    :: else -> end_prolonging()
    fi;
    if
    /* C: renewal_keep_wanted */
    :: verdict == bounced && op == renew && valid != 0 && f == field -> post(renew, f, 0)
    /* C: call_done */
    :: verdict == bounced && op == prolong && valid != 0 -> post(prolong, f, 0)
    /* C: release_answered */
    :: verdict == bounced && op == release -> post(release, f, 0)
#ifdef TRANSFER
    :: verdict == bounced && op == transfer ->
        unanswered?f, g; unanswered!f, g;
        post(transfer, f, g)
    :: verdict != bounced && op == transfer ->
        unanswered?_, _;
        if
        :: verdict == no && valid != 0 -> lose()
        :: else -> skip
        fi
#endif
    /* C: renewal_apply, lease_change_settle */
    :: verdict == yes && op != release && op != transfer && f == field -> extend()
    :: verdict == no && op != release && op != transfer && f == field && valid != 0 -> lose()
    :: verdict != bounced && op == release -> /* C: release_is_answered */
        is_released = true; valid = 0; state = gone
    :: else -> skip
    fi
}

inline cut()
{
    drops--;
    do
    :: nempty(command) ->
        command?op, f, g, _;
        if
        :: len(late) < 2 -> late!op, f, g
        :: skip
        fi
    :: empty(command) -> break
    od;
    do
    :: nempty(answer) -> answer?_, _, _, _
    :: empty(answer) -> break
    od
}

inline link_again() /* C: reconnect_one, hli_release_on_link_up */
{
#ifdef TRANSFER
    g = len(unanswered);
    do
    :: g > 0 -> unanswered?f, sent; unanswered!f, sent; post(transfer, f, sent); g--
    :: else -> break
    od;
#endif
    if
    :: asked_to_release -> post(release, field, 0)
    :: !asked_to_release && prolonging && valid != 0 -> /* C: hli_calls_retry */
        renewing = false; post(prolong, field, 0)
    :: else -> renewing = false
    fi
}

#define ROOM (len(command) < PIPE - 1)
#define IS_KEPT (valid != 0 && !asked_to_release)
#define MAY_CHANGE (IS_KEPT && state == held && !prolonging) /* the new end is for this owner */

active proctype process()
{
end:
    do
    /* C: hli_keep_pass */
    :: atomic { MAY_CHANGE && passes < PASSES && ROOM -> change_inside() }
    /* C: hli_keep_retain, hli_keep_retain_fast */
    :: atomic { MAY_CHANGE -> state = idle }
    /* C: hli_keep_plan, hli_keep_resume_fast */
    :: atomic { valid != 0 && state == idle && passes < PASSES && ROOM ->
        state = held; change_inside() }
    /* C: renewal_send, keep_refresh */
    :: atomic { IS_KEPT && ROOM && !renewing -> renewing = true; post(renew, field, 0) }
    /* C: hli_lease_change_begin */
    :: atomic { IS_KEPT && state == held && ROOM && !was_prolonged ->
        was_prolonged = true; prolonging = true;
#ifdef EARLY_LEASE
        valid = now + LONG;
#endif
        post(prolong, field, 0) }
    /* C: release_hold, hli_keep_answered, grant_is_wanted */
    :: atomic { IS_KEPT && ROOM -> say_farewell() }
    /* C: release_lost */
    :: atomic { valid == 0 && !asked_to_release && ROOM -> say_farewell() }
    :: atomic { nempty(answer) && nfull(command) -> take_answer() }
    :: atomic { drops > 0 && (nempty(command) || nempty(answer)) -> cut(); link_again() }
    od
}

/* ---- what must hold ---- */

#define IS_OURS (holder != 0 && holder != STRANGER)

hidden byte believer_holds, orphan_free, loss_is_true, loss_is_final;

active proctype judge()
{
end:
    if
    :: atomic { valid != 0 && state == held && !IS_OURS -> assert(believer_holds) }
    :: atomic { is_released && IS_OURS -> assert(orphan_free) }
    :: atomic { false_loss -> assert(loss_is_true) }
    :: atomic { has_revived -> assert(loss_is_final) }
    fi
}
