/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The line of a kind whose releases grant to nobody, and tell all: one unit, two processes that no
 * message reaches, one that hears, and one that no message reaches and that dies. Every process that
 * can go on does so some time (weak fairness): who waits asks again, at any time, and a process that
 * lives asks before its sign of life ends.
 *
 * Broken on purpose:
 *   NO_LINE        who asks first takes what is free
 *   HEARS_ALONE    who hears never lines up
 *   NO_MARK        who takes without being heard leaves no mark
 *   ENDLESS_SIGN   a sign of life never ends
 */
#define ALL 4
#define HEARS(who) (who == 2)
#define NOBODY ALL

byte holder = NOBODY;
chan line = [ALL] of { byte };
bool waits[ALL];
bool lives[ALL] = false; /* as far as the server knows: it has asked a moment ago */
bool is_dead;            /* the last one */
bool mark;               /* one that no message reaches took it a moment ago */
bool has_seen;           /* and the one that hears has asked since: that comes before the mark's end */

hidden byte head;

/* Lua: turns.lua */
inline drop_the_dead()
{
    head = NOBODY;
    do
    :: nempty(line) ->
        line?<head>;
        if
        :: !lives[head] -> line?_; head = NOBODY
        :: lives[head] -> break
        fi
    :: empty(line) -> break
    od
}

inline take_turn(who)
{
    leave_line(who);
#ifndef NO_MARK
    if
    :: !HEARS(who) -> mark = true; has_seen = false
    :: HEARS(who) -> skip
    fi
#else
    skip
#endif
}

inline leave_line(who)
{
    if
    :: line??[eval(who)] -> line??eval(who)
    :: else -> skip
    fi
}

#ifdef HEARS_ALONE
#define LINES_UP(who) (!HEARS(who))
#else
#define LINES_UP(who) (!HEARS(who) || len(line) > 0 || mark)
#endif

inline line_up(who)
{
    if
    :: LINES_UP(who) && !line??[eval(who)] -> line!who; lives[who] = true
    :: LINES_UP(who) && line??[eval(who)] -> lives[who] = true
    :: !LINES_UP(who) -> skip
    fi
}

#ifdef NO_LINE
#define IS_TURN(who) true
#else
#define IS_TURN(who) (head == NOBODY || head == who)
#endif

inline ask(who) /* C: hli_ask_plan */
{
    has_seen = has_seen || HEARS(who);
    drop_the_dead();
    if
    :: holder == NOBODY && IS_TURN(who) -> /* C: ask_is_ours */
        holder = who; waits[who] = false;
        take_turn(who)
    :: holder != NOBODY || !IS_TURN(who) -> line_up(who) /* C: hli_busy_answered */
    fi
}

active [3] proctype process()
{
    byte me = _pid;
    do
    :: atomic { !waits[me] && holder != me -> waits[me] = true }
    :: atomic { waits[me] -> ask(me) }
    :: atomic { holder == me -> holder = NOBODY }
    od
}

active proctype mortal()
{
    do
    :: atomic { !is_dead && !waits[3] && holder != 3 -> waits[3] = true }
    :: atomic { !is_dead && waits[3] -> ask(3) }
    :: atomic { !is_dead && waits[3] -> waits[3] = false; leave_line(3) } /* C: hli_ask_abandon */
    :: atomic { !is_dead && holder == 3 -> holder = NOBODY }
    :: atomic { !is_dead -> is_dead = true; break }
    od
}

active proctype time_goes_on()
{
    do
    :: atomic { mark && (has_seen || !waits[2]) -> mark = false; has_seen = false }
    :: atomic { is_dead && holder == 3 -> holder = NOBODY } /* its lease is over */
#ifndef ENDLESS_SIGN
    :: atomic { is_dead && lives[3] -> lives[3] = false } /* C: hli_command_sign_ms */
#endif
    od
}

/* ---- what must hold ---- */

ltl deaf_is_served { [] (waits[0] -> <> !waits[0]) }
ltl hearing_is_served { [] (waits[2] -> <> !waits[2]) }
