/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Holding through a failover: grace and reclaim.
 *
 * One name. A master has a replica that lags behind at will, and is promoted; a restart of a single
 * server is the same, with an old data set or none. The old master is dead then, or goes on for a
 * while. A client that comes to the new master greets it first: the first greeting of a term begins
 * the grace. In the grace no client takes a free name, and each holder reclaims its own, as long as
 * it believes in it.
 *
 * Time has no end: each lease, validity and grace is kept as the ticks that are left of it. A
 * request is sent, is run and is answered in three steps, and time may pass between any two.
 *
 *   N n             so many clients, at most 3
 *   LEASE CLAIM GRACE  in ticks
 *   LAG n           an old master goes on for at most so long; 0: it is dead
 *   FAILS n         so many failovers; 9: no end of them
 *   TAKES n         so many requests for the lock, of all clients together; 9: no end of them
 *   DROPS 1         a link to a living master breaks once; one request of it may run late
 *   TERM_MOVES n    so often the slots in which the term stands move away, and it is found no more
 *   DEPTH 2         holds are entered twice, and the count stands in the key
 *   QUEUE 1         a client that finds the lock busy queues, and a release grants it
 *   READERS n       the first so many clients lock for reading
 *   TOKENS n        each hold has a token; when so many are drawn, no client takes the lock
 *   CLOCK_TOKENS 1  a token is larger than all that were drawn before, in any term
 *   DRIFT 1         the clock of client 0 gains or loses a tick in each lease
 *   MARGIN n        so much sooner a validity ends for its client, and so much later the grace
 *   ONLY n          only the n-th promise is looked at; 0: all
 *   FAIR            for a fair search: everybody_takes
 *
 * Broken on purpose, beside a GRACE that is too short for a LEASE or a CLAIM, and a MARGIN of 0 with
 * DRIFT:
 *   TAKE_IN_GRACE   a client that has greeted takes at once
 *   NO_TERM         client 0 does not ask for the term
 *   NO_SLOT         a server that has no place for a term answers that its grace is over
 *   TERM_FIRST      a greeting writes the term, and the grace in a second step
 *   GRACE_ANEW      every greeting begins the grace anew
 *   FROM_SENDING    the grace is counted from when the greeting was sent
 *   NO_TIMER        a client that found the grace on does not ask when it is over
 *   NO_BOUND        the old master goes on for ever
 *   NO_REST_RULE    a hold is extended in a new term whatever is left of it
 *   NO_UNTIL        a reclaim runs though its hold is over
 *   UNTIL_GRACE     a reclaim runs until the grace is over
 *   FROM_ANSWER     the lease of a reclaim counts from its answer
 *   NO_RECLAIM      in the grace, too, a renewal is a renewal only
 *   NO_RAISE        a reclaim leaves the counter of tokens alone
 *   ALL_TOKENS      that counter is to be above all tokens of the last term, too
 *   SHORT_RECLAIM   a reclaim writes a lease that ends before its client's validity
 *   NO_COUNT        a reclaim writes a count of 1
 *   REENTER_FIRST   in the grace a nested acquire does not wait for the reclaim
 *   REENTER_ALL     a nested acquire extends a hold that may not be extended
 *   GRANT_IN_GRACE  a release in the grace grants the lock
 *   OLD_GRANT       a grant of the old master counts for a client that knows of the new one
 *   STEPS n         so often the server's clock steps forward, and ends its grace: it must not
 *   STALE_WRITER    a reader's reclaim keeps the field of a writer, as of one of its own client
 *   READER_ALONE    a reader's reclaim removes the other readers
 */
#ifndef N
#define N 2
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef CLAIM
#define CLAIM LEASE
#endif
#ifndef LAG
#define LAG 0
#endif
#define LONGEST LATER(LEASE, CLAIM) /* C: hli_lease_longest_ms */
#ifndef GRACE
#define GRACE (LONGEST + LAG)
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifndef TAKES
#define TAKES 9
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef TERM_MOVES
#define TERM_MOVES 0
#endif
#ifndef STEPS
#define STEPS 0
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#ifndef QUEUE
#define QUEUE 0
#endif
#ifndef READERS
#define READERS 0
#endif
#ifndef TOKENS
#define TOKENS 0
#endif
#ifndef CLOCK_TOKENS
#define CLOCK_TOKENS 0
#endif
#ifndef ONLY
#define ONLY 0
#endif
#ifndef DRIFT
#define DRIFT 0
#endif
#ifndef MARGIN
#define MARGIN DRIFT
#endif

mtype = { nothing, greet, take, renew, reclaim, reenter, unnest, release, hand_over };
mtype = { unread, yes, no };
mtype = { rests, waits, holds, leaves }; /* leaves: its release is not answered */

/* The data sets, of which a client's link leads to one of the first two. */
#define OLD 0
#define NEW 1
#define REPLICA 2
#define NOWHERE 3

/* After its link broke, a client's next tenure has another field. */
#if DROPS
#define FIELDS 6
#else
#define FIELDS 3
#endif
#define FIELD(p) ((p) + 3 * anew[p])
#define PROCESS(f) ((f) % 3)
#define AT(k, f) ((k) * FIELDS + (f))
#define READS(p) ((p) < READERS)
#define SHARE(p, q) (READS(p) && READS(q))
#define BIT(n) (1 << (n))
#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define FULL (LEASE - MARGIN)

/* Of each data set: what is left of each field's lease (0: not there), its count; who queues; the
 * counter of tokens; what is left of the grace. */
byte left[3 * FIELDS], count[3 * FIELDS];
byte queued[3], counter[3], grace[3];
bool has_term[2] = true; /* its term is written */
byte fails = FAILS, takes = TAKES, drops = DROPS, moves = TERM_MOVES, steps = STEPS;
byte lag; /* what is left of the old master */

/* The clients. */
mtype state[3] = rests;
byte at[3] = NEW;
bool ready[3] = true;  /* greeted on this link */
bool met[3] = true;    /* greeted in this term */
bool may[3] = true;    /* its hold may be extended */
bool fresh[3];         /* its hold was given or confirmed in this term */
byte valid[3];         /* what is left of its validity (0: it does not hold) */
byte waiting[3];       /* what is left of the grace, by its own clock */
byte levels[3], token[3];
byte granted[3];       /* a grant is on its way to it, with so much left */
bool anew[3];
byte steady;           /* ticks until the clock of client 0 may drift again */

/* The one request of each that is under way: what it is, its answer, when it was sent. */
mtype op[3] = nothing, said[3] = unread;
byte age[3], until[3]; /* until: of a reclaim, how long its hold is believed in */
/* and one unread one of a link that is gone */
mtype late = nothing;
byte late_field, late_at, late_until;

#ifdef FAIR
bool is_done; /* client 1 wants the lock no more */
#define IS_DONE(p) ((p) == 1 && is_done)
#else
#define IS_DONE(p) false
#endif
bool two_believe, false_loss, harmed, token_fell;
byte top, drawn;  /* tokens: of the last believer; that was drawn last, by anybody */
byte grace_age;   /* ticks since it began */

/* Scratch of one step. A d_step leaves none that is looked at behind it, for what is hidden it does
 * not put back. */
hidden mtype o, verdict;
hidden byte f, g, k, n, q, next, ticks, is_hit, is_late, believed;

/* ---- the servers ---- */

/* Is the lock another's, so that field f has to wait? */
#define BLOCKS(g) (left[AT(k, g)] != 0 && (g) != f && !SHARE(PROCESS(f), PROCESS(g)))
#if DROPS
#define IS_BUSY \
    (BLOCKS(0) || BLOCKS(1) || BLOCKS(2) || BLOCKS(3) || BLOCKS(4) || BLOCKS(5))
#else
#define IS_BUSY (BLOCKS(0) || BLOCKS(1) || BLOCKS(2))
#endif

inline put() /* with a count of n; no step shortens a lease */
{
    left[AT(k, f)] = LATER(left[AT(k, f)], LEASE); count[AT(k, f)] = n
}

inline remove()
{
    left[AT(k, f)] = 0; count[AT(k, f)] = 0
}

/* Of counters by the server's clock: the clock has gone on since the last token. */
inline draw_token()
{
    counter[k] = 1 + (CLOCK_TOKENS -> LATER(counter[k], drawn) : counter[k]);
    drawn = (CLOCK_TOKENS -> LATER(drawn, counter[k]) : 0);
    token[PROCESS(f)] = counter[k]
}

inline script_take()
{
    if
    :: IS_BUSY ->
        verdict = no;
        queued[k] = (QUEUE -> queued[k] | BIT(PROCESS(f)) : 0)
    :: !IS_BUSY ->
        queued[k] = (left[AT(k, f)] == 0 -> 0 : queued[k]);
        n = LATER(count[AT(k, f)], 1); put();
        if
        :: TOKENS > 0 -> draw_token()
        :: else -> skip
        fi
    fi
}

#if defined(READER_ALONE)
#define STAYS(f, g) false
#elif defined(STALE_WRITER)
#define STAYS(f, g) READS(f)
#else
#define STAYS(f, g) SHARE(f, g)
#endif

/* Whatever stands there of others is older than the hold that is reclaimed. */
inline remove_others()
{
    d_step {
        for (g : 0 .. FIELDS - 1) {
            is_hit = (left[AT(k, g)] != 0 && g != f && !STAYS(PROCESS(f), PROCESS(g)));
            harmed = harmed ||
                (is_hit && g == FIELD(PROCESS(g)) && valid[PROCESS(g)] != 0 &&
                    fresh[PROCESS(g)] && at[PROCESS(g)] == k);
            left[AT(k, g)] = (is_hit -> 0 : left[AT(k, g)]);
            count[AT(k, g)] = (is_hit -> 0 : count[AT(k, g)])
        }
    }
}

#if defined(NO_UNTIL)
#define IN_GRACE true
#elif defined(UNTIL_GRACE)
#define IN_GRACE (grace[k] != 0)
#else
#define IN_GRACE (believed != 0) /* C: hli_grace_lasts_ms */
#endif
#ifdef NO_COUNT
#define RECLAIMED_LEVELS 1
#else
#define RECLAIMED_LEVELS LATER(levels[PROCESS(f)], 1)
#endif
#ifdef SHORT_RECLAIM
#define BELIEVED 0
#else
#define BELIEVED valid[PROCESS(f)] /* C: loss_lease_ms */
#endif
#ifdef NO_RAISE
#define RAISED counter[k]
#else
#define RAISED LATER(counter[k], token[PROCESS(f)])
#endif

inline script_reclaim() /* Lua: lock_reclaim.lua, rw_read_reclaim.lua, permit_reclaim.lua */
{
    if
    :: left[AT(k, f)] == 0 && !IN_GRACE -> verdict = no
    :: left[AT(k, f)] != 0 || IN_GRACE ->
        if
        :: left[AT(k, f)] == 0 -> remove_others()
        :: else -> skip
        fi;
        n = RECLAIMED_LEVELS; put();
        left[AT(k, f)] = LATER(left[AT(k, f)], BELIEVED);
        counter[k] = (TOKENS > 0 -> RAISED : 0)
    fi
}

/* The renewal of a hold; of a nested acquire and its release, the count that is to stand there. */
inline script_extend() /* to a count of n */
{
    if
    :: left[AT(k, f)] == 0 -> verdict = no
    :: left[AT(k, f)] != 0 -> put()
    fi
}

#define CAN_GET_GRANT(p) (next == NOWHERE && (queued[k] & BIT(p)) && p != PROCESS(f))

/* Any waiter may be the first one; a waiter that does not listen is granted nothing. */
inline grant_next()
{
    next = NOWHERE;
    if
    :: CAN_GET_GRANT(0) -> next = 0
    :: CAN_GET_GRANT(1) -> next = 1
    :: CAN_GET_GRANT(2) -> next = 2
    :: skip
    fi;
    if
    :: next != NOWHERE ->
        queued[k] = queued[k] & ~BIT(next);
        if
        :: at[next] == k && ready[next] && state[next] == waits ->
            left[AT(k, FIELD(next))] = CLAIM; count[AT(k, FIELD(next))] = 1;
            if
            :: granted[next] = CLAIM
            :: skip /* the message is lost */
            fi
        :: else -> skip
        fi
    :: next == NOWHERE -> skip
    fi
}

inline script_release()
{
    if
    :: left[AT(k, f)] == 0 -> verdict = no; queued[k] = queued[k] & ~BIT(PROCESS(f))
    :: left[AT(k, f)] != 0 ->
        remove();
        if
        :: o == hand_over -> grant_next()
        :: o == release -> skip
        fi
    fi
}

/* One script: a term begins, and with it the grace, or neither. */
inline script_greet() /* Lua: term.lua */
{
    if
#ifdef TERM_FIRST
    :: !has_term[k] -> has_term[k] = true; verdict = unread
    :: has_term[k] && waiting[PROCESS(f)] != 0 -> grace[k] = GRACE
#else
#ifdef NO_SLOT
    :: !has_term[k] -> skip
#else
    :: !has_term[k] -> has_term[k] = true; grace[k] = GRACE
#endif
#endif
    :: else ->
#ifdef GRACE_ANEW
        grace[k] = GRACE
#else
        skip
#endif
    fi;
    waiting[PROCESS(f)] = (verdict == yes -> grace[k] : GRACE)
}

inline run_script()
{
    verdict = yes;
    if
    :: o == greet -> script_greet()
    :: o == take -> script_take()
    :: o == reclaim -> script_reclaim()
    :: o == renew -> n = count[AT(k, f)]; script_extend()
    :: o == reenter -> n = 2; script_extend()
    :: o == unnest -> n = 1; script_extend()
    :: o == release || o == hand_over -> script_release()
    fi
}

#define HAS_REQUEST(p) (op[p] != nothing && said[p] == unread && at[p] != NOWHERE)
#define MAY_RUN_LATE(p) ((p) == 0 && late != nothing)

/* Each server runs one script at a time: this one of process p, or a late one. */
proctype server(byte p)
{
end:
    do
    :: atomic { HAS_REQUEST(p) || MAY_RUN_LATE(p) ->
        if
        :: HAS_REQUEST(p) ->
            is_late = 0; o = op[p]; f = FIELD(p); k = at[p]; believed = until[p]
        :: MAY_RUN_LATE(p) ->
            is_late = 1; o = late; f = late_field; k = late_at; believed = late_until;
            late = nothing; late_field = 0; late_at = 0; late_until = 0
        fi;
        run_script();
        if
        :: is_late -> skip
        :: !is_late -> said[p] = verdict
        fi
    }
    od
}

inline copy(from, to)
{
    for (g : 0 .. FIELDS - 1) {
        left[AT(to, g)] = left[AT(from, g)]; count[AT(to, g)] = count[AT(from, g)]
    }
    queued[to] = queued[from]; counter[to] = counter[from]; grace[to] = grace[from]
}

inline clear(which)
{
    for (g : 0 .. FIELDS - 1) {
        left[AT(which, g)] = 0; count[AT(which, g)] = 0
    }
    queued[which] = 0; counter[which] = 0; grace[which] = 0
}

inline end_old_master()
{
    clear(OLD); has_term[OLD] = true;
    for (q : 0 .. 2) {
        at[q] = (at[q] == OLD -> NOWHERE : at[q])
    }
    if
    :: late != nothing && late_at == OLD -> late = nothing; late_field = 0; late_at = 0; late_until = 0
    :: else -> skip
    fi
}

#ifdef ALL_TOKENS
#define IS_STRICT true
#else
#define IS_STRICT false
#endif

/* The replica's data, or none; a new term, which no client has met. */
inline fail_over()
{
    fails = (fails < 9 -> fails - 1 : fails);
    copy(NEW, OLD);
    copy(REPLICA, NEW);
    if
    :: fails == 0 -> clear(REPLICA)
    :: else -> skip
    fi;
    has_term[OLD] = (LAG == 0 || has_term[NEW]); has_term[NEW] = false;
    grace_age = 0; lag = LAG;
    top = (CLOCK_TOKENS || IS_STRICT -> top : 0);
    for (q : 0 .. 2) {
        at[q] = (at[q] == NEW -> OLD : NOWHERE)
    }
    late_at = 0;
    if
    :: LAG == 0 -> end_old_master()
    :: else -> skip
    fi
}

active proctype replication()
{
end:
    do
    :: d_step { fails > 0 -> copy(NEW, REPLICA) }
    :: d_step { fails > 0 -> clear(REPLICA) }
    :: d_step { fails > 0 && lag == 0 -> fail_over() }
    od
}

/* The next greeting begins a grace anew: it cannot tell this from a new term. */
active proctype resharding() /* Lua: term_keys.lua */
{
end:
    do
    :: atomic { moves > 0 && has_term[NEW] -> moves--; has_term[NEW] = false; grace_age = 0 }
    od
}

/* ---- time ---- */

inline forget_hold(p)
{
    valid[p] = 0; fresh[p] = false; may[p] = true; levels[p] = 0; token[p] = 0
}

inline count_down(p)
{
    if
    :: valid[p] == 1 -> forget_hold(p)
    :: else -> valid[p] = LESS(valid[p], 1)
    fi;
#ifndef NO_TIMER
    waiting[p] = (ready[p] -> LESS(waiting[p], 1) : waiting[p]);
#endif
    granted[p] = LESS(granted[p], 1);
    age[p] = (op[p] != nothing && age[p] < LEASE -> age[p] + 1 : age[p])
}

/* For the servers a tick; for client 0, whose clock drifts, a tick or none or two. */
inline pass_tick()
{
    for (g : 0 .. 3 * FIELDS - 1) {
        left[g] = LESS(left[g], 1);
        count[g] = (left[g] == 0 -> 0 : count[g])
    }
    for (q : 0 .. 2) {
        grace[q] = LESS(grace[q], 1);
        until[q] = LESS(until[q], 1)
    }
    late_until = LESS(late_until, 1);
    grace_age = (has_term[NEW] && grace_age < GRACE -> grace_age + 1 : grace_age);
    if
#ifndef NO_BOUND
    :: lag == 1 -> lag = 0; end_old_master()
    :: lag > 1 -> lag--
#endif
    :: else -> skip
    fi;
    do
    :: ticks > 0 -> count_down(0); ticks--
    :: else -> break
    od;
    count_down(1);
    count_down(2)
}

active proctype clock()
{
end:
    do
    :: atomic {
        if
        :: ticks = 1; steady = LESS(steady, 1)
        :: DRIFT && steady == 0 -> ticks = 0; steady = LEASE - 1
        :: DRIFT && steady == 0 -> ticks = 2; steady = LEASE - 1
        fi;
        d_step { pass_tick() }
    }
    :: atomic { steps > 0 && grace[NEW] != 0 -> steps--; grace[NEW] = 0 } /* never, unless broken */
    od
}

/* ---- a client ---- */

inline send(what)
{
    op[p] = what; said[p] = unread; age[p] = 0;
    until[p] = (op[p] == reclaim -> valid[p] + MARGIN : 0)
}

inline end_request()
{
    op[p] = nothing; said[p] = unread; age[p] = 0; until[p] = 0
}

inline note_believers()
{
    d_step {
        for (q : 0 .. 2) {
            two_believe = two_believe || (q != p && valid[q] != 0 && !SHARE(p, q))
        }
        if
        :: TOKENS > 0 ->
            token_fell = token_fell || token[p] <= top;
            top = (CLOCK_TOKENS || IS_STRICT -> LATER(top, token[p]) : top)
        :: else -> skip
        fi
    }
}

inline begin_hold(ticks_left)
{
    state[p] = holds; valid[p] = ticks_left; fresh[p] = true; may[p] = true;
    levels[p] = 1;
    granted[p] = 0;
    note_believers()
}

#ifdef FROM_ANSWER
#define TICKS_GONE (op[p] == reclaim -> 0 : age[p])
#else
#define TICKS_GONE age[p]
#endif

inline extend()
{
    n = TICKS_GONE;
    valid[p] = LATER(valid[p], LESS(FULL, n));
    fresh[p] = true
}

inline lose()
{
    false_loss = true; valid[p] = 0 /* never, unless broken */
}

inline take_take_answer()
{
    if
    :: state[p] == holds && valid[p] != 0 && said[p] == yes -> extend() /* a grant was first */
    :: (state[p] == rests || state[p] == waits) && said[p] == yes && age[p] < FULL ->
        begin_hold(FULL - age[p])
    :: (state[p] == rests || state[p] == waits) && said[p] == yes && age[p] >= FULL ->
        state[p] = leaves; token[p] = 0; granted[p] = 0
    :: (state[p] == rests || state[p] == waits) && said[p] == no ->
        state[p] = (QUEUE -> waits : rests)
    :: else -> token[p] = (valid[p] != 0 -> token[p] : 0)
    fi
}

inline note_reclaimed_token()
{
    if
    :: TOKENS > 0 && at[p] == NEW -> top = LATER(top, token[p])
    :: else -> skip
    fi
}

/* Of a renewal, a reclaim, a nested acquire, and its release. */
inline take_hold_answer() /* C: renewal_succeeded, hli_reenter_answered */
{
    if
    :: valid[p] != 0 && said[p] == yes ->
        if
        :: op[p] == reenter -> levels[p] = 2; extend()
        :: op[p] == unnest -> levels[p] = 1
        :: op[p] == renew -> extend()
        :: op[p] == reclaim -> extend(); note_reclaimed_token()
        fi
    :: valid[p] != 0 && said[p] == no -> lose()
    :: valid[p] == 0 -> skip /* lost by the clock, and stays so */
    fi
}

#ifdef NO_REST_RULE
#define MAY_BE_EXTENDED true
#else
#define MAY_BE_EXTENDED (may[p] && valid[p] >= LAG)
#endif

inline take_greet_answer() /* C: hli_term_meet, hli_grace_meet */
{
    ready[p] = true;
#ifdef FROM_SENDING
    waiting[p] = LESS(waiting[p], age[p]);
#else
    waiting[p] = (waiting[p] != 0 -> waiting[p] + MARGIN : 0);
#endif
    if
    :: !met[p] -> met[p] = true; may[p] = (valid[p] == 0 || MAY_BE_EXTENDED)
    :: met[p] -> skip
    fi
}

inline take_answer()
{
    if
    :: op[p] == greet -> take_greet_answer()
    :: op[p] == take -> take_take_answer()
    :: op[p] == renew || op[p] == reclaim || op[p] == reenter || op[p] == unnest ->
        take_hold_answer()
    :: op[p] == release || op[p] == hand_over ->
        state[p] = (state[p] == leaves -> rests : state[p])
    fi;
    end_request()
}

/* The link is gone: its request may run late where it was sent, if that server lives. */
inline cut()
{
    if
    :: DROPS && late == nothing && HAS_REQUEST(p) && op[p] != greet && !anew[p] ->
        late = op[p]; late_field = FIELD(p); late_at = at[p]; late_until = until[p]
    :: skip
    fi;
    end_request();
    ready[p] = false; waiting[p] = 0;
#ifndef OLD_GRANT
    granted[p] = 0
#endif
}

#ifdef NO_TERM
#define ASKS_FOR_TERM (p != 0)
#else
#define ASKS_FOR_TERM true
#endif

/* To the new master. What it has granted, or asked for, at the old one is void. */
inline move() /* C: reconnect_one */
{
    cut();
    at[p] = NEW; met[p] = false; fresh[p] = false;
    if
    :: ASKS_FOR_TERM -> send(greet)
    :: !ASKS_FOR_TERM -> ready[p] = true; met[p] = true /* never, unless broken */
    fi
}

inline drop()
{
    drops--;
    cut();
    send(greet)
}

inline begin_tenure()
{
    takes = (takes < 9 -> takes - 1 : takes);
    anew[p] = anew[p] || (DROPS && drops == 0);
    send(take)
}

#ifdef TAKE_IN_GRACE
#define IS_OVER true
#else
#define IS_OVER (waiting[p] == 0) /* C: ask_is_in_grace */
#endif
#ifdef NO_RECLAIM
#define RECLAIMS false
#else
#define RECLAIMS (waiting[p] != 0 && !fresh[p]) /* C: renewal_note_term, renewal_is_written */
#endif
#ifdef REENTER_FIRST
#define MAY_NEST may[p]
#elif defined(REENTER_ALL)
#define MAY_NEST (fresh[p] || !may[p])
#else
#define MAY_NEST (fresh[p] && may[p]) /* C: hli_reenter_plan */
#endif
#ifdef GRANT_IN_GRACE
#define GRANTS QUEUE
#else
#define GRANTS (QUEUE && waiting[p] == 0) /* C: lock_format_release */
#endif
/* Of clients that are alike, client 0 comes first, then client 1. */
#define MAY_TAKE(p) ((TAKES == 9 || (takes > 0 && takes + p <= TAKES)) && !IS_DONE(p))
#define MAY_SEND (ready[p] && op[p] == nothing && at[p] != NOWHERE)
#define HAS_HOLD (state[p] == holds && valid[p] != 0)

proctype client(byte p)
{
end:
    do
    :: atomic { MAY_TAKE(p) && MAY_SEND && (state[p] == rests || state[p] == waits) && IS_OVER &&
        (TOKENS == 0 || counter[at[p]] < TOKENS) -> begin_tenure() }
    :: atomic { MAY_SEND && HAS_HOLD && may[p] && (valid[p] < FULL || !fresh[p]) ->
        send((RECLAIMS -> reclaim : renew)) }
    :: atomic { DEPTH > 1 && MAY_SEND && HAS_HOLD && levels[p] == 1 && MAY_NEST -> send(reenter) }
    :: atomic { DEPTH > 1 && MAY_SEND && HAS_HOLD && levels[p] == 2 && MAY_NEST -> send(unnest) }
    /* It ends its hold, which may be lost by now, or gives up its wait. */
    :: atomic { state[p] == holds || state[p] == waits ->
        state[p] = leaves; granted[p] = 0; forget_hold(p) }
    :: atomic { MAY_SEND && state[p] == leaves -> send((GRANTS -> hand_over : release)) }
    :: atomic { said[p] != unread -> take_answer() }
#ifdef FAIR
    :: atomic { p == 1 && !is_done -> is_done = true }
#endif
    :: atomic { granted[p] > MARGIN && state[p] == waits -> begin_hold(granted[p] - MARGIN) }
    :: atomic { at[p] != NEW -> move() }
    :: atomic { drops > 0 && at[p] == NEW && ready[p] && op[p] != nothing -> drop() }
    od
}

/* ---- what must hold ---- */

/* Of a hold that the living master has given or confirmed. */
#define IS_CONFIRMED(p) (valid[p] != 0 && fresh[p] && at[p] == NEW)
#define BELIEVES_WRONGLY(p) (IS_CONFIRMED(p) && left[AT(NEW, FIELD(p))] == 0)
#define MISCOUNTS(p) \
    (IS_CONFIRMED(p) && op[p] == nothing && \
        count[AT(NEW, FIELD(p))] != levels[p])
/* No writer can be in beside a reader. */
#define IS_WRITTEN(p) (!READS(p) && left[AT(NEW, FIELD(p))] != 0)
#define READS_BESIDE_WRITER(p) \
    (READS(p) && IS_CONFIRMED(p) && (IS_WRITTEN(0) || IS_WRITTEN(1) || IS_WRITTEN(2)))
#define GRACE_LASTS (has_term[NEW] && grace_age >= GRACE && grace[NEW] != 0)

hidden byte one_believer, believer_holds, loss_is_true, reclaim_harms_none, grace_ends,
    count_is_kept, tokens_rise, readers_only; /* names of what was violated */

#define LOOKS_AT(n) (ONLY == 0 || ONLY == (n))

active proctype judge()
{
end:
    if
    :: atomic { LOOKS_AT(1) && two_believe -> assert(one_believer) }
    :: atomic { LOOKS_AT(2) &&
        (BELIEVES_WRONGLY(0) || BELIEVES_WRONGLY(1) || BELIEVES_WRONGLY(2)) ->
        assert(believer_holds) }
    :: atomic { LOOKS_AT(3) && false_loss -> assert(loss_is_true) }
    :: atomic { LOOKS_AT(4) && harmed -> assert(reclaim_harms_none) }
    :: atomic { LOOKS_AT(5) && GRACE_LASTS -> assert(grace_ends) }
    :: atomic { LOOKS_AT(6) && (MISCOUNTS(0) || MISCOUNTS(1) || MISCOUNTS(2)) ->
        assert(count_is_kept) }
    :: atomic { LOOKS_AT(7) && token_fell -> assert(tokens_rise) }
    :: atomic { LOOKS_AT(8) &&
        (READS_BESIDE_WRITER(0) || READS_BESIDE_WRITER(1) || READS_BESIDE_WRITER(2)) ->
        assert(readers_only) }
    fi
}

#ifdef FAIR
/* If client 1 wants the lock no more, then client 0 gets it, again and again. Without a word of that
 * no fair run has an end of its wishes, and nothing would be proved. */
#define IS_QUIET (state[1] == rests && op[1] == nothing)
#define IS_GIVEN (op[0] == take && said[0] == yes)
ltl everybody_takes {
    (<>[] (is_done && IS_QUIET)) -> ([]<> (IS_GIVEN || valid[0] != 0))
}
#endif

init
{
    atomic {
        for (next : 0 .. N - 1) {
            run server(next); run client(next)
        }
    }
}
