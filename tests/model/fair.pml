/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The fair lock's queue, which waiters of ours and of Redisson's stand in, each once. A waiter of
 * ours asks again and again; one of Redisson's sleeps until it is told. Each member has an end, when
 * Redisson's scripts drop it as a head. Time passes by ticks, after which all that live have asked,
 * listened, and come when they were told. A lock is held for any time.
 *
 *   OURS n, JAVA n   so many members
 *   DEATHS n         so many waiters die
 *   EARLY n          1: they die only while ours holds the lock, or never
 *   LEAVES n         so many waiters of ours give up
 *   FAIR             who can go on does so some time, so each that waits is served
 *
 * Broken on purpose:
 *   JUMPS            who finds the lock free takes it, whoever waits
 *   NO_LOOK          nobody looks for dead members
 *   SPARES_NONE      who does not listen yet is taken for dead
 *   NO_OWN_END       a waiter of ours does not move its end on
 *   NO_PROLONGING    nor that of a head of Redisson's
 *   ADDS_NOTHING     a waiter of ours behind one of Redisson's adds no wait
 *   NO_STAND         nor does it stand longer than one whose end comes
 *   NO_HEIGHT        nor does it keep its end so much later
 *   TAKES_BACK       who goes takes back what it has added from all behind, ours too
 *   KEEPS_PLACE      a waiter that gives up stays in the queue
 */
#ifndef OURS
#define OURS 2
#endif
#ifndef JAVA
#define JAVA 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef LEAVES
#define LEAVES 1
#endif
#define N (OURS + JAVA)
#define NOBODY N
#define STAND 3 /* ticks: how long a place of ours stands */
#define WAIT 4  /* what Redisson's add, and subtract again */
#define LEASE 1
#define FAR 20

#define IS_OURS(p) (p < OURS)

mtype = { outside, waits, holds, gone, dead };

mtype state[N] = outside;
byte line[N], length; /* the queue, its head first */
byte end_of[N], added[N];
byte order[N], comers; /* who came when */
byte holder = NOBODY;

bool hears[N], is_told[N];
bool has_asked[N];  /* ours, in this tick: spared though it does not listen */
bool is_late[N];    /* Redisson's, whose wait was over while none of ours stood behind */
byte silent_for[N]; /* Redisson's, as a look has noted it: 1 since this tick, 2 for longer */
bool looks_again, is_ripe;

byte deaths = DEATHS, leaves = LEAVES;
bool was_overtaken, was_dropped, is_left;

hidden byte k, m, x, place, first;
hidden short by, later, bulk;

/* ---- the queue ---- */

inline find(p)
{
    place = 0;
    do
    :: place < length && line[place] != p -> place++
    :: else -> break
    od
}

inline remove_at(at)
{
    k = at;
    do
    :: k + 1 < length -> line[k] = line[k + 1]; k++
    :: else -> break
    od;
    length--;
    line[length] = 0
}

inline move(from, amount)
{
    k = from;
    do
    :: k < length ->
        later = end_of[line[k]] + amount;
        end_of[line[k]] = (later < 0 -> 0 : (later > FAR -> FAR : later));
        k++
    :: else -> break
    od
}

#ifdef TAKES_BACK
#define TAKES_OVER(p) false
#define REST(p) FAR
#else
#define TAKES_OVER(p) IS_OURS(p)
#define REST(p) (end_of[p] - STAND)
#endif

#ifdef NO_HEIGHT
#define HEIGHT(p) STAND
#else
#define HEIGHT(p) (STAND + added[p])
#endif

/* What a member that goes has added is that of the next one, at this place. Lua: fair.lua */
inline hand_on(amount, at)
{
    if
    :: at < length && amount > 0 && TAKES_OVER(line[at]) ->
        x = line[at];
        added[x] = added[x] + amount;
        end_of[x] = ((at > 0 && end_of[x] < HEIGHT(x)) -> HEIGHT(x) : end_of[x])
    :: at < length && amount > 0 && !TAKES_OVER(line[at]) && REST(line[at]) > 0 ->
        by = (amount < REST(line[at]) -> -amount : -REST(line[at]));
        move(at, by)
    :: else -> skip
    fi
}

/* Is none of ours behind it that lives? Then Redisson drops it when its wait is over. */
inline see_if_late(p)
{
    find(p);
    is_late[p] = true;
    do
    :: place < length ->
        is_late[p] = is_late[p] && !(IS_OURS(line[place]) && state[line[place]] == waits);
        place++
    :: else -> break
    od
}

/* A member that lives loses its place. */
inline judge_drop(at)
{
    x = line[at];
    if
    :: !IS_OURS(x) && !is_late[x] -> see_if_late(x)
    :: else -> skip
    fi;
    was_dropped = was_dropped || (state[x] == waits && !is_late[x])
}

inline forget(p)
{
    end_of[p] = 0; added[p] = 0; silent_for[p] = 0; has_asked[p] = false
}

#ifdef SPARES_NONE
#define IS_SPARED(p) false
#else
#define IS_SPARED(p) has_asked[p]
#endif

#define IS_DEAD(p) (!hears[p] && (IS_OURS(p) -> !IS_SPARED(p) : \
    (holder == NOBODY && silent_for[p] == 2)))

/* A head of Redisson's, or one that will be it after so long. Lua: fair.lua */
inline prolong(since)
{
    if
    :: !IS_OURS(line[0]) && end_of[line[0]] < since + STAND ->
        by = since + WAIT - end_of[line[0]];
        move(0, by)
    :: else -> skip
    fi
}

/* Lua: fair.lua */
inline look(asker)
{
#ifndef NO_LOOK
    m = 0;
    first = line[0];
    do
    :: m < length && line[m] != asker && IS_DEAD(line[m]) ->
        judge_drop(m);
        x = line[m];
        bulk = added[x];
        remove_at(m);
        forget(x);
        hand_on(bulk, m)
    :: m < length && line[m] != asker && !IS_DEAD(line[m]) ->
        x = line[m];
        silent_for[x] = ((hears[x] || IS_OURS(x)) -> 0 : (silent_for[x] == 0 -> 1 : silent_for[x]));
        m++
    :: m < length && line[m] == asker -> m++
    :: m >= length -> break
    od;
#ifndef NO_PROLONGING
    if
    :: length > 0 && (holder != NOBODY || line[0] != first) && hears[line[0]] -> prolong(0)
    :: else -> skip
    fi
#endif
#endif
    skip
}

/* Lua: fair.lua */
inline tell_head()
{
    if
    :: length > 0 && !hears[line[0]] -> look(NOBODY)
    :: else -> skip
    fi;
    if
    :: length > 0 && hears[line[0]] -> is_told[line[0]] = true
    :: length > 0 && !hears[line[0]] -> looks_again = true; is_ripe = false
    :: else -> skip
    fi
}

inline take(p)
{
    k = 0;
    do
    :: k < N -> was_overtaken = was_overtaken ||
        (k != p && state[k] == waits && !is_late[k] && order[k] < order[p]); k++
    :: else -> break
    od;
    holder = p; state[p] = holds; is_told[p] = false
}

/* ---- ours ---- */

/* Lua: fair_lock_acquire.lua */
inline take_ours(p)
{
    find(p);
    if
    :: place < length ->
        bulk = added[p];
        remove_at(place);
        hand_on(bulk, place)
    :: else -> skip
    fi;
    forget(p);
    take(p);
    if
    :: length > 0 -> prolong(LEASE)
    :: else -> skip
    fi
}

#ifdef JUMPS
#define MAY_TAKE(p) (holder == NOBODY)
#else
#define MAY_TAKE(p) (holder == NOBODY && (length == 0 || line[0] == p))
#endif

/* Lua: fair_lock_acquire.lua */
inline enter(p)
{
#ifndef ADDS_NOTHING
    added[p] = ((length > 0 && !IS_OURS(line[length - 1])) -> WAIT : 0);
#endif
    end_of[p] = (length > 0 -> end_of[line[length - 1]] : 0);
#ifdef NO_STAND
    end_of[p] = end_of[p] + added[p];
#else
    end_of[p] = (end_of[p] < STAND -> STAND : end_of[p]) + added[p];
#endif
    end_of[p] = (end_of[p] > FAR -> FAR : end_of[p]);
    line[length] = p; length++
}

/* Its place, and its end. Lua: fair_lock_acquire.lua */
inline keep_place(p)
{
    find(p);
    if
    :: place == length -> enter(p)
#ifndef NO_OWN_END
    :: place == 0 && place < length && (end_of[p] < STAND || end_of[p] > STAND + 1) ->
        end_of[p] = STAND
    :: place > 0 && place < length && end_of[p] < HEIGHT(p) -> end_of[p] = HEIGHT(p)
#endif
    :: else -> skip
    fi;
    has_asked[p] = true
}

inline ask(p) /* C: hli_ask_plan */
{
    if
    :: MAY_TAKE(p) -> take_ours(p)
    :: else ->
        look(p);
        if
        :: MAY_TAKE(p) -> take_ours(p)
        :: else ->
            keep_place(p);
            if
            :: holder == NOBODY && hears[line[0]] -> is_told[line[0]] = true
            :: else -> skip
            fi
        fi
    fi
}

inline release(p) /* Lua: fair_lock_release.lua */
{
    holder = NOBODY; state[p] = gone; hears[p] = false;
    tell_head()
}

inline leave(p) /* C: hli_ask_abandon */
{
    find(p);
    state[p] = gone; hears[p] = false; is_told[p] = false;
#ifndef KEEPS_PLACE
    if
    :: place < length ->
        bulk = added[p];
        remove_at(place);
        hand_on(bulk, place)
    :: else -> skip
    fi;
    forget(p);
    if
    :: place == 0 && length > 0 -> prolong(0)
    :: else -> skip
    fi;
#endif
    if
    :: place == 0 && holder == NOBODY -> tell_head()
    :: else -> skip
    fi
}

inline die(p)
{
    deaths--;
    state[p] = dead; hears[p] = false; is_told[p] = false
}

#define MAY_DIE (deaths > 0 && (EARLY == 0 || (holder != NOBODY && IS_OURS(holder))))

proctype ours(byte p)
{
end:
    do
    :: atomic { state[p] == outside -> comers++; order[p] = comers; state[p] = waits; ask(p) }
    :: atomic { state[p] == waits && !hears[p] -> hears[p] = true }
    :: atomic { state[p] == waits && (!has_asked[p] || (holder == NOBODY && hears[p])) ->
        ask(p) }
    :: atomic { state[p] == holds -> release(p) }
    :: atomic { state[p] == waits && leaves > 0 -> leaves--; leave(p) }
    :: atomic { state[p] == waits && MAY_DIE -> die(p) }
    od
}

/* The second look of a release. */
active proctype releaser()
{
end:
    do
    :: atomic { looks_again && is_ripe -> /* C: release_looks_again */
        looks_again = false; is_ripe = false;
        if
        :: holder == NOBODY -> tell_head()
        :: else -> skip
        fi }
    od
}

/* ---- Redisson's ---- */

inline drop_stale()
{
    do
    :: length > 0 && end_of[line[0]] == 0 ->
        judge_drop(0);
        x = line[0];
        remove_at(0);
        forget(x)
    :: else -> break
    od
}

inline java_asks(p)
{
    is_told[p] = false;
    drop_stale();
    find(p);
    if
    :: holder == NOBODY && (length == 0 || line[0] == p) ->
        if
        :: place < length -> remove_at(place)
        :: else -> skip
        fi;
        move(0, -WAIT);
        forget(p);
        take(p)
    :: else ->
        if
        :: place == length ->
            end_of[p] = (length > 0 -> end_of[line[length - 1]] : LEASE) + WAIT;
            end_of[p] = (end_of[p] > FAR -> FAR : end_of[p]);
            line[length] = p; length++
        :: else -> skip
        fi
    fi
}

proctype java(byte p)
{
end:
    do
    :: atomic { state[p] == outside -> comers++; order[p] = comers; state[p] = waits; java_asks(p) }
    :: atomic { state[p] == waits && !hears[p] -> hears[p] = true; is_told[p] = true }
    :: atomic { state[p] == waits && is_told[p] -> java_asks(p) }
    :: atomic { state[p] == holds ->
        drop_stale();
        holder = NOBODY; state[p] = gone; hears[p] = false;
        if
        :: length > 0 && hears[line[0]] -> is_told[line[0]] = true
        :: else -> skip
        fi }
    :: atomic { state[p] == waits && MAY_DIE -> die(p) }
    od
}

/* ---- time ---- */

#define IS_IN_TIME(p) (state[p] != waits || \
    (hears[p] && (IS_OURS(p) -> has_asked[p] : !is_told[p])))

inline pass(p)
{
    if
    :: !IS_OURS(p) && end_of[p] == 1 && !is_late[p] -> see_if_late(p)
    :: else -> skip
    fi;
    end_of[p] = (end_of[p] > 0 -> end_of[p] - 1 : 0);
    has_asked[p] = false;
    silent_for[p] = (silent_for[p] == 1 -> 2 : silent_for[p])
}

#if N == 4
#define ALL(X) (X(0) && X(1) && X(2) && X(3))
#else
#define ALL(X) (X(0) && X(1) && X(2))
#endif

active proctype time()
{
end:
    do
    :: atomic { ALL(IS_IN_TIME) ->
        m = 0;
        do
        :: m < N -> pass(m); m++
        :: else -> break
        od;
        is_ripe = looks_again }
    od
}

/* ---- what must hold ---- */

#define HAS_LEFT(p) (state[p] == gone && end_of[p] > 0)

hidden byte in_order, place_is_kept, queue_is_clean; /* names of what was violated */

active proctype judge()
{
end:
    if
    :: atomic { was_overtaken -> assert(in_order) }
    :: atomic { was_dropped -> assert(place_is_kept) }
    :: atomic { length > 0 && state[line[0]] == gone -> assert(queue_is_clean) }
    fi
}

#ifdef FAIR
ltl ours_are_served { [] (state[0] == waits -> <> (state[0] != waits)) }
ltl javas_are_served {
    [] (state[N - 1] == waits -> <> (state[N - 1] != waits || is_late[N - 1]))
}
#endif

init
{
    atomic {
        for (x : 0 .. N - 1) {
            if
            :: IS_OURS(x) -> run ours(x)
            :: else -> run java(x)
            fi
        }
    }
}
