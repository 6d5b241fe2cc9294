/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A Redlock: one name at several masters that know nothing of one another.
 *
 * A client asks all masters at once, and has the lock while a majority of them has its key. Each
 * request is sent, is run and is answered in three steps, and time may pass between any two; a
 * master may be slow or dead at any time. What a client does not need any more is released behind
 * its request, on the same link. A master is killed and starts empty; a link breaks, and what was
 * under way there runs late or never; the next link kills the last one.
 *
 * Time has no end: each lease and validity is kept as the ticks that are left of it. Nothing tells
 * the masters apart, so they are sorted after each step: states that differ only in the order of
 * the masters are one.
 *
 *   CLIENTS n       so many clients, at most 3
 *   MASTERS n       so many masters, at most 5
 *   SLOW 1          an answer may be read at any time after its request has run
 *   LEASE MUTE      in ticks; for so long a master has no vote after its start
 *   RENEWS 0        no hold is renewed, and no master is asked anew for it
 *   TAKES n         so many attempts, of all clients together; 9: no end of them
 *   RESTARTS n      so often a master is killed and starts empty; 9: no end of it
 *   DISK 1          the masters have their data on disk: one that is killed starts with them and
 *                   votes at once; or, with the same configuration, without them and the marker
 *   FLUSHES n       so often a master loses all its keys, and its marker with them, but no link
 *   MOVES 1         client 0's address of master 1 comes to lead to master 0, for ever (and the
 *                   masters are not sorted)
 *   DROPS n         so many links to a living master break
 *   NO_KILL         the next link does not kill the last one
 *   DRIFT 1         the clock of client 0 gains or loses a tick in each lease
 *   MARGIN n        so much sooner a validity ends for its client
 *   DEAD n          the first n masters never answer (and the masters are not sorted)
 *   FAIR            for a fair search: everybody_takes
 *   LASTING         client 0 keeps its hold; masters restart one at a time, and answer in time
 *   UNSORTED        for a trail that is easier to read
 *   ONLY n          only the n-th promise is looked at; 0: all
 *
 * Broken on purpose, beside a MUTE that is too short, a MARGIN of 0 with DRIFT, and NO_KILL:
 *   HALF            half of the masters are enough
 *   LAST_VOTE       a hold is valid until the last of its votes ends
 *   FROM_ANSWER     a vote's lease counts from its answer
 *   NO_UNDO         nothing is released where no answer came
 *   UNDO_FIRST      the release overtakes the request
 *   NO_COMPARE      a release deletes whatever is there
 *   ONE_VALUE       all attempts of a client write the same value
 *   SAME_VALUE      an attempt writes the same value at all masters
 *   LOSS_UNSEEN     a master whose data are gone votes at once, as its configuration is the same,
 *                   and with FLUSHES its start
 *   TAKES_OTHERS    a lost vote is taken again, whoever has it now
 *   MINORITY_RENEWS one renewal extends the whole hold
 *   ONE_NO_ENDS     one lost vote ends the hold
 *   START_UNSEEN    a master's start is looked at before the ask alone
 *   NO_REASK        a lost vote is not asked for again
 *   WAITS_FOR_ALL   an attempt does not end before all masters have answered
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef MASTERS
#define MASTERS 3
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef RENEWS
#define RENEWS 1
#endif
#ifdef NO_REASK
#define REASKS 0
#else
#define REASKS RENEWS
#endif
#ifndef SLOW
#define SLOW 0
#endif
#ifndef MUTE
#define MUTE LEASE
#endif
#ifndef TAKES
#define TAKES 9
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef DISK
#define DISK 0
#endif
#ifndef FLUSHES
#define FLUSHES 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef DRIFT
#define DRIFT 0
#endif
#ifndef MARGIN
#define MARGIN DRIFT
#endif
#ifndef DEAD
#define DEAD 0
#endif
#ifndef ONLY
#define ONLY 0
#endif

#ifdef HALF
#define MAJORITY (MASTERS / 2)
#else
#define MAJORITY (MASTERS / 2 + 1) /* C: quorum_new */
#endif
#define FULL (LEASE - MARGIN) /* C: hli_lease_validity */
#define IS_ALIVE(m) ((m) >= DEAD)
#define PAIRS (CLIENTS * MASTERS)
#define AT(p, m) ((p) * MASTERS + (m))
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define LATER(a, b) ((a) > (b) -> (a) : (b))

#ifdef LASTING
#define ENDS(p) ((p) != 0)
#define IS_PROMPT true
#else
#define ENDS(p) true
#define IS_PROMPT false
#endif

mtype = { rests, polls, holds };         /* a client */
mtype = { none, wants, asks, held };     /* its vote at a master; wants: not sent yet */
mtype = { nothing, ask, undo, release }; /* a request; undo: an ask, and a release behind it */
mtype = { unread, yes, no };

/* The masters. Of a client there may be the value of its last attempt there, or of a former one. The
 * value names the master for which it was written, which matters only where an address moves. */
#if MOVES && !defined(SAME_VALUE)
#define VALUE(p, m) ((p) + 1 + CLIENTS * ((m) + 1)) /* C: hli_tenure_write_field */
#define FORMER(p, m) ((p) + 1)
#elif defined(ONE_VALUE)
#define VALUE(p, m) ((p) + 1)
#define FORMER(p, m) VALUE(p, m)
#else
#define VALUE(p, m) ((p) + 1)
#define FORMER(p, m) ((p) + 1 + CLIENTS)
#endif
byte key[MASTERS], left[MASTERS]; /* 0: none; what is left of its lease */
byte mute[MASTERS];               /* what is left of the time after its start without a vote */

/* The clients. Of each pair: the vote, what is left of its validity; the link's one request, or a
 * request and the release behind it. */
mtype state[CLIENTS] = rests;
mtype vote[PAIRS] = none, op[PAIRS] = nothing, said[PAIRS] = unread;
byte valid[PAIRS], age[PAIRS];    /* age: ticks since the request was sent */
bool is_gone[PAIRS];              /* its key was lost with the master */
bool is_down[PAIRS];              /* the link */
mtype late[PAIRS] = nothing;      /* what the last link may still run */
bool is_former[PAIRS];            /* that is of a former attempt */
#ifdef FAIR
bool has_rested[CLIENTS] = true;  /* since its last attempt a tick has passed */
bool is_done;                     /* client 1 wants the lock no more */
#endif

byte takes = TAKES, restarts = RESTARTS, flushes = FLUSHES, drops = DROPS;
#if MOVES
bool is_moved; /* the address of client 0 for master 1 */
#define LEADS(p, m) (is_moved && (p) == 0 && (m) == 1 -> 0 : (m))
#else
#define LEADS(p, m) (m)
#endif
byte steady; /* ticks until the clock of client 0 may drift again */
bool false_loss, was_lost, gave_up;

/* Scratch of one step. A d_step leaves none that is looked at behind it, for what is hidden it does
 * not put back. */
hidden mtype o, verdict, was;
hidden byte a, b, i, j, is_kept, is_read, m, q, ran, s, ticks, value, count, byte_was;
hidden int rank[MASTERS], rank_was;

/* ---- the order of the masters ---- */

inline swap_bytes(x, y)
{
    byte_was = x; x = y; y = byte_was
}

inline swap_words(x, y)
{
    was = x; x = y; y = was
}

inline swap_masters()
{
    swap_bytes(key[a], key[b]); swap_bytes(left[a], left[b]); swap_bytes(mute[a], mute[b]);
    rank_was = rank[a]; rank[a] = rank[b]; rank[b] = rank_was;
    for (q : 0 .. CLIENTS - 1) {
        swap_words(vote[AT(q, a)], vote[AT(q, b)]);
        swap_words(op[AT(q, a)], op[AT(q, b)]);
        swap_words(said[AT(q, a)], said[AT(q, b)]);
        swap_words(late[AT(q, a)], late[AT(q, b)]);
        swap_bytes(valid[AT(q, a)], valid[AT(q, b)]);
        swap_bytes(age[AT(q, a)], age[AT(q, b)]);
        swap_bytes(is_gone[AT(q, a)], is_gone[AT(q, b)]);
        swap_bytes(is_down[AT(q, a)], is_down[AT(q, b)]);
        swap_bytes(is_former[AT(q, a)], is_former[AT(q, b)])
    }
}

/* Masters of the same rank may differ: then one state more is searched than is needed. */
inline sort()
{
#if DEAD == 0 && !MOVES && !defined(UNSORTED)
    for (a : 0 .. MASTERS - 1) {
        rank[a] = (key[a] * 4 + left[a]) * 4 + mute[a];
        for (q : 0 .. CLIENTS - 1) {
            rank[a] = (((rank[a] * 16 + vote[AT(q, a)]) * 16 + op[AT(q, a)]) * 16 +
                said[AT(q, a)]) * 4 + valid[AT(q, a)];
            rank[a] = ((rank[a] * 4 + age[AT(q, a)]) * 16 + late[AT(q, a)]) * 7 +
                is_gone[AT(q, a)] + 2 * is_down[AT(q, a)] + 4 * is_former[AT(q, a)]
        }
    }
    for (i : 1 .. MASTERS - 1) {
        for (a : 0 .. MASTERS - 1 - i) {
            b = a + 1;
            if
            :: rank[a] > rank[b] -> swap_masters()
            :: else -> skip
            fi
        }
    }
#endif
    skip
}

/* Any master of which X(p, m) holds. */
#if MASTERS == 3
#define ANY(X) (X(p, 0) || X(p, 1) || X(p, 2))
#define CHOOSE(X) \
    if \
    :: X(p, 0) -> m = 0 \
    :: X(p, 1) -> m = 1 \
    :: X(p, 2) -> m = 2 \
    fi
#define COUNT(X, p) (X(p, 0) + X(p, 1) + X(p, 2))
#else
#define ANY(X) (X(p, 0) || X(p, 1) || X(p, 2) || X(p, 3) || X(p, 4))
#define CHOOSE(X) \
    if \
    :: X(p, 0) -> m = 0 \
    :: X(p, 1) -> m = 1 \
    :: X(p, 2) -> m = 2 \
    :: X(p, 3) -> m = 3 \
    :: X(p, 4) -> m = 4 \
    fi
#define COUNT(X, p) (X(p, 0) + X(p, 1) + X(p, 2) + X(p, 3) + X(p, 4))
#endif

/* ---- the masters ---- */

inline clear_key(m)
{
    key[m] = 0; left[m] = 0
}

#ifdef TAKES_OTHERS
#define IS_FREE (key[m] == 0 || state[p] == holds)
#else
#define IS_FREE (key[m] == 0)
#endif
#ifdef NO_COMPARE
#define MAY_DELETE true
#else
#define MAY_DELETE (key[m] == value)
#endif

inline script_acquire(m) /* Lua: redlock_acquire.lua */
{
    if
    :: IS_FREE || key[m] == value -> key[m] = value; left[m] = LEASE; verdict = yes
    :: else -> verdict = no
    fi
}

inline script_renew(m) /* Lua: redlock_renew.lua */
{
    if
    :: key[m] == value -> left[m] = LEASE; verdict = yes
    :: else -> verdict = no
    fi
}

inline script_release(m) /* Lua: redlock_release.lua */
{
    if
    :: MAY_DELETE -> clear_key(m)
    :: else -> skip
    fi
}

inline run_script(m)
{
    if
    :: o == ask -> script_acquire(m)
    :: o == release -> script_release(m)
#ifdef UNDO_FIRST
    :: o == undo -> script_release(m); script_acquire(m)
#else
    :: o == undo -> script_acquire(m); script_release(m)
#endif
    fi
}

/* ---- a client ---- */

#define IS_VALID(p, m) (valid[AT(p, m)] != 0)
#define IS_ASKED(p, m) (vote[AT(p, m)] == wants || vote[AT(p, m)] == asks)
#define HAS_KEY(p, m) (vote[AT(p, m)] == held && key[m] == VALUE(p, m))
#ifdef LAST_VOTE
#define VALID_VOTES 1
#else
#define VALID_VOTES MAJORITY /* C: majority_validity */
#endif
#define IS_SURE(p) (COUNT(IS_VALID, p) >= VALID_VOTES)
#define BELIEVES(p) (state[p] == holds && IS_SURE(p))

/* A tenure that was asked for and is not wanted: the release goes out behind the ask. Where the
 * link is down it goes out on the next one. */
inline undo_ask(p, m) /* C: hli_acquire_withdraw, hli_ask_abandon */
{
#ifdef NO_UNDO
    op[AT(p, m)] = (said[AT(p, m)] == no -> nothing : op[AT(p, m)]);
#else
    op[AT(p, m)] =
        (op[AT(p, m)] == ask && said[AT(p, m)] == unread && !is_down[AT(p, m)] -> undo : release);
    said[AT(p, m)] = unread; age[AT(p, m)] = 0;
#endif
    vote[AT(p, m)] = none; is_gone[AT(p, m)] = false
}

inline release_vote(p, m) /* C: hli_vote_give_back, hli_vote_release */
{
    vote[AT(p, m)] = none; valid[AT(p, m)] = 0; is_gone[AT(p, m)] = false;
    op[AT(p, m)] = release; said[AT(p, m)] = unread; age[AT(p, m)] = 0
}

inline withdraw(p, m) /* C: hli_ballot_withdraw */
{
    if
    :: vote[AT(p, m)] == asks -> undo_ask(p, m)
    :: vote[AT(p, m)] == wants -> vote[AT(p, m)] = none
    :: else -> skip
    fi
}

inline withdraw_all(p)
{
    for (j : 0 .. MASTERS - 1) {
        withdraw(p, j)
    }
}

/* The votes that are held are given back, and what is asked is undone. */
inline give_all_back(p) /* C: attempt_fail, ballot_release, hli_ballot_give_back */
{
    state[p] = rests;
#ifdef FAIR
    has_rested[p] = false;
#endif
    for (j : 0 .. MASTERS - 1) {
        if
        :: vote[AT(p, j)] == held -> release_vote(p, j)
        :: else -> withdraw(p, j)
        fi
    }
}

/* A first request of an attempt has a value of its own. */
inline send_ask(m) /* C: hli_ask_plan, hli_tenure_new */
{
    if
    :: vote[AT(p, m)] == wants ->
        key[m] = (key[m] == VALUE(p, m) -> FORMER(p, m) : key[m]);
#if MOVES
        key[0] = (key[0] == VALUE(p, m) -> FORMER(p, m) : key[0]);
#endif
        is_former[AT(p, m)] = late[AT(p, m)] != nothing
    :: else -> skip
    fi;
    vote[AT(p, m)] = asks; op[AT(p, m)] = ask; said[AT(p, m)] = unread; age[AT(p, m)] = 0
}

/* The master's start counts when the answer is read; an answer that was read before the link broke
 * is older than the start. The client looks before it asks, too, but the link may meet another
 * master between the decision and the sending: here each ask is sent. */
#ifdef START_UNSEEN
#define MAY_VOTE true
#define MAY_ASK(p, m) (mute[m] == 0 || vote[AT(p, m)] == asks)
#else
#define MAY_VOTE (mute[m] == 0 || is_gone[AT(p, m)]) /* C: hli_restart_forbids, restart_tell */
#define MAY_ASK(p, m) true
#endif

/* A release that is under way blocks the ask, for its answer. */
#define CAN_ASK(p, m) \
    (IS_ASKED(p, m) && op[AT(p, m)] == nothing && !is_down[AT(p, m)] && MAY_ASK(p, m))

inline ask_masters() /* C: hli_attempt_ask, attempt_choose */
{
    for (j : 0 .. MASTERS - 1) {
        vote[AT(p, j)] = (vote[AT(p, j)] == none -> wants : vote[AT(p, j)]);
        if
        :: CAN_ASK(p, j) -> send_ask(j)
        :: else -> skip
        fi
    }
}

#ifdef FROM_ANSWER
#define GONE 0
#else
#define GONE age[AT(p, m)]
#endif
inline end_request(m)
{
    op[AT(p, m)] = nothing; said[AT(p, m)] = unread; age[AT(p, m)] = 0
}

inline take_vote(m) /* C: hli_vote_settle, vote_accept, attempt_win */
{
    if
    :: said[AT(p, m)] == yes && MAY_VOTE && LESS(FULL, GONE) != 0 ->
        vote[AT(p, m)] = held; valid[AT(p, m)] = LESS(FULL, GONE); end_request(m);
        state[p] = (state[p] == polls && COUNT(IS_VALID, p) >= MAJORITY -> holds : state[p])
    :: said[AT(p, m)] == yes && !(MAY_VOTE && LESS(FULL, GONE) != 0) -> release_vote(p, m)
    :: said[AT(p, m)] == no -> vote[AT(p, m)] = none; end_request(m)
    fi
}

#ifdef ONE_NO_ENDS
#define IS_LOST(p) true
#else
#define IS_LOST(p) !IS_SURE(p)
#endif

inline lose_vote(m) /* C: hli_majority_vote_changed, hli_majority_drop_lost */
{
    count = COUNT(HAS_KEY, p);
    release_vote(p, m);
    if
    :: state[p] == holds && IS_LOST(p) ->
        false_loss = count >= MAJORITY; was_lost = IS_PROMPT && p == 0;
        give_all_back(p)
    :: else -> skip
    fi
}

inline take_answer(m)
{
    if
    :: vote[AT(p, m)] == asks -> take_vote(m)
    :: vote[AT(p, m)] != asks -> end_request(m) /* never, unless broken */
    fi
}

inline renewed(m) /* C: renewal_succeeded */
{
#ifdef MINORITY_RENEWS
    for (j : 0 .. MASTERS - 1) {
        valid[AT(p, j)] = (valid[AT(p, j)] != 0 -> FULL : 0)
    }
#else
    valid[AT(p, m)] = FULL
#endif
}

/* It is run as it is sent, for later it would only find less, or prolong a key. Its answer is read
 * at once, as above, or never. */
inline renew(m) /* C: renewal_send */
{
    value = VALUE(p, m); s = LEADS(p, m);
    script_renew(s);
    if
    :: is_read && verdict == yes -> renewed(m)
    :: is_read && verdict == no -> lose_vote(m)
    :: !is_read -> skip
    fi
}

#define HAS_UNRUN(p, m) \
    (op[AT(p, m)] == undo || op[AT(p, m)] == release || \
        (op[AT(p, m)] == ask && said[AT(p, m)] == unread))

/* The link breaks: what was under way may run late, or not. Of the answers none comes. */
inline drop(m) /* C: hli_link_break */
{
    drops--;
    is_down[AT(p, m)] = true;
    late[AT(p, m)] = (HAS_UNRUN(p, m) -> op[AT(p, m)] : nothing);
    if
    :: op[AT(p, m)] == undo || op[AT(p, m)] == release ->
        op[AT(p, m)] = release; age[AT(p, m)] = 0
    :: else -> end_request(m)
    fi
}

inline come_up(m) /* C: handshake_add_kill, reconnect_one, hli_release_on_link_up */
{
    is_down[AT(p, m)] = false;
#ifndef NO_KILL
    late[AT(p, m)] = nothing; is_former[AT(p, m)] = false
#endif
}

#define IS_ANSWERED(p, m) (said[AT(p, m)] != unread)
#define CAN_RENEW(p, m) \
    (vote[AT(p, m)] == held && op[AT(p, m)] == nothing && !is_down[AT(p, m)] && \
        valid[AT(p, m)] < FULL)
#define CAN_DROP(p, m) (!is_down[AT(p, m)] && late[AT(p, m)] == nothing && op[AT(p, m)] != nothing)
#define IS_DOWN(p, m) is_down[AT(p, m)]
#define HAS_NO_VOTE(p, m) (vote[AT(p, m)] == none)

/* Living masters answer within the time for a vote. */
#if defined(FAIR) || defined(LASTING)
#define IS_SLOW(p, m) (IS_ASKED(p, m) && IS_ALIVE(m))
#define IS_UNDER_WAY(p, m) (IS_ALIVE(m) && op[AT(p, m)] != nothing)
#else
#define IS_SLOW(p, m) false
#define IS_UNDER_WAY(p, m) false
#endif
#ifdef FAIR
#define HAS_RESTED(p) (has_rested[p] && !((p) == 1 && is_done)) /* C: busy_back_off */
#else
#define HAS_RESTED(p) true
#endif
#ifdef WAITS_FOR_ALL
#define MAY_FAIL (!ANY(IS_ASKED))
#else
#define MAY_FAIL (!ANY(IS_SLOW)) /* C: hli_ballot_is_due, hli_attempt_step */
#endif

proctype client(byte p)
{
end:
    do
    :: atomic { state[p] == rests && takes > 0 && HAS_RESTED(p) ->
        takes = (takes < 9 -> takes - 1 : takes); state[p] = polls;
        d_step { ask_masters(); sort() } }
    :: atomic { ANY(CAN_ASK) -> CHOOSE(CAN_ASK); d_step { send_ask(m); sort() } }
    :: atomic { ANY(IS_ANSWERED) -> CHOOSE(IS_ANSWERED); d_step { take_answer(m); sort() } }
    :: atomic { (state[p] == polls && MAY_FAIL) || (state[p] == holds && ENDS(p)) ->
        d_step { give_all_back(p); sort() } }
    /* Of a hold: a master that has no vote for it is asked anew; and not waited for for ever. */
    :: atomic { REASKS && state[p] == holds && !ANY(IS_ASKED) && ANY(HAS_NO_VOTE) ->
        d_step { ask_masters(); sort() } } /* C: ballot_rest */
    :: atomic { state[p] == holds && ANY(IS_ASKED) && !ANY(IS_SLOW) ->
        d_step { withdraw_all(p); sort() } } /* C: ballot_go_on */
    :: atomic { RENEWS && state[p] == holds && ANY(CAN_RENEW) -> CHOOSE(CAN_RENEW);
        if
        :: is_read = true
        :: !IS_PROMPT -> is_read = false
        fi;
        d_step { renew(m); sort() } }
#ifdef FAIR
    :: atomic { p == 1 && !is_done -> is_done = true }
#endif
    :: atomic { drops > 0 && ANY(CAN_DROP) -> CHOOSE(CAN_DROP); d_step { drop(m); sort() } }
    :: atomic { ANY(IS_DOWN) -> CHOOSE(IS_DOWN); d_step { come_up(m); sort() } }
    od
}

/* ---- requests ---- */

#define HAS_REQUEST(p, m) \
    (IS_ALIVE(m) && !is_down[AT(p, m)] && HAS_UNRUN(p, m))
#define MAY_RUN_LATE(p, m) (late[AT(p, m)] != nothing)

/* An answer is read at once: read later it gives the same validity, which counts from the sending.
 * With SLOW an answer may be too late for that. */
inline serve(m)
{
    o = op[AT(p, m)]; value = VALUE(p, m); s = LEADS(p, m);
    run_script(s);
    said[AT(p, m)] = (o == ask -> verdict : unread);
    if
    :: o == ask && (SLOW || vote[AT(p, m)] != asks) -> skip
    :: o == ask && !SLOW && vote[AT(p, m)] == asks -> take_vote(m)
    :: o != ask -> end_request(m)
    fi
}

inline serve_late(m)
{
    o = late[AT(p, m)]; value = (is_former[AT(p, m)] -> FORMER(p, m) : VALUE(p, m));
    run_script(m);
    late[AT(p, m)] = nothing; is_former[AT(p, m)] = false
}

/* A master does one thing at a time; of each client what its link brought. */
proctype master(byte p)
{
end:
    do
    :: atomic { ANY(HAS_REQUEST) -> CHOOSE(HAS_REQUEST); d_step { serve(m); sort() } }
    :: atomic { ANY(MAY_RUN_LATE) -> CHOOSE(MAY_RUN_LATE); d_step { serve_late(m); sort() } }
    od
}

/* The last request that ran before the end, whose answer never came; ran: of which client. Where the
 * data are gone it changed nothing. */
inline run_unanswered(m)
{
    if
    :: ran < CLIENTS && op[AT(ran, m)] != nothing && said[AT(ran, m)] == unread &&
            !is_down[AT(ran, m)] ->
        o = op[AT(ran, m)]; value = VALUE(ran, m); run_script(m)
    :: else -> skip
    fi
}

/* Its data are gone: its start tells of that, or with DISK the marker, which is gone with them. */
inline lose_data(m) /* C: hli_restart_forbids, hli_restart_young_ms Lua: redlock_acquire.lua */
{
    for (q : 0 .. CLIENTS - 1) {
        is_gone[AT(q, m)] = key[m] == VALUE(q, m) && vote[AT(q, m)] != none
    }
    clear_key(m);
#ifndef LOSS_UNSEEN
    mute[m] = MUTE
#endif
}

/* Killed and started, with its data or empty. What was not run is asked again on the next link; an
 * answer that was on its way is read or not. */
inline restart(m)
{
    restarts = (restarts < 9 -> restarts - 1 : restarts);
    if
    :: is_kept -> run_unanswered(m)
    :: else -> lose_data(m)
    fi;
    for (q : 0 .. CLIENTS - 1) {
        late[AT(q, m)] = nothing; is_former[AT(q, m)] = false;
        if
        :: op[AT(q, m)] == ask && said[AT(q, m)] != yes ->
            op[AT(q, m)] = nothing; said[AT(q, m)] = unread; age[AT(q, m)] = 0
        :: op[AT(q, m)] == undo -> op[AT(q, m)] = release; age[AT(q, m)] = 0
        :: else -> skip
        fi
    }
}

/* All its keys are gone, as after FLUSHALL; the script finds no marker and sets it anew. */
inline flush(m)
{
    flushes--; lose_data(m)
}

/* ---- time ---- */

/* A release that no link takes is given up when the key is gone by itself. */
inline grow_old(p, m) /* C: release_plan_one */
{
    age[AT(p, m)] = (op[AT(p, m)] != nothing && age[AT(p, m)] < LEASE -> age[AT(p, m)] + 1
        : age[AT(p, m)]);
    if
    :: op[AT(p, m)] == release && is_down[AT(p, m)] && age[AT(p, m)] == LEASE ->
        gave_up = true; op[AT(p, m)] = nothing; age[AT(p, m)] = 0
    :: op[AT(p, m)] == undo || (op[AT(p, m)] == release && !is_down[AT(p, m)]) ->
        age[AT(p, m)] = 0
    :: else -> skip
    fi
}

inline count_down(p)
{
#ifdef FAIR
    has_rested[p] = true;
#endif
    for (j : 0 .. MASTERS - 1) {
        grow_old(p, j);
        if
        :: valid[AT(p, j)] == 1 -> release_vote(p, j)
        :: else -> valid[AT(p, j)] = LESS(valid[AT(p, j)], 1)
        fi
    }
    if
    :: state[p] == holds && !IS_SURE(p) -> /* C: hli_loss_by_time */
        was_lost = IS_PROMPT && p == 0;
        give_all_back(p)
    :: else -> skip
    fi
}

inline pass_tick()
{
    for (j : 0 .. MASTERS - 1) {
        left[j] = LESS(left[j], 1);
        key[j] = (left[j] == 0 -> 0 : key[j]);
        mute[j] = LESS(mute[j], 1)
    }
    do
    :: ticks > 0 -> count_down(0); ticks--
    :: else -> break
    od;
    for (q : 1 .. CLIENTS - 1) {
        count_down(q)
    }
}

/* What the holder has to do first, in good time. */
#ifdef LASTING
#define IS_ASKED_FOR(p, m) (REASKS && vote[AT(p, m)] != held && mute[m] == 0)
#define IS_MUTE(p, m) (mute[m] != 0)
#define HAS_TO_DO(p) (state[p] == holds && COUNT(CAN_RENEW, p) + COUNT(IS_ASKED_FOR, p) > 0)
#define MAY_RESTART(p) (state[p] == holds && !HAS_TO_DO(p) && !ANY(IS_MUTE))
#else
#define HAS_TO_DO(p) false
#define MAY_RESTART(p) true
#endif

/* For the masters a tick; for client 0, whose clock drifts, a tick or none or two. */
active proctype clock()
{
    byte p;
end:
    do
    :: atomic {
        COUNT(IS_UNDER_WAY, 0) + COUNT(IS_UNDER_WAY, 1) == 0 && !HAS_TO_DO(0) ->
        if
        :: ticks = 1; steady = LESS(steady, 1)
        :: DRIFT && steady == 0 -> ticks = 0; steady = LEASE - 1
        :: DRIFT && steady == 0 -> ticks = 2; steady = LEASE - 1
        fi;
        d_step { pass_tick(); sort() } }
    od
}

active proctype killer()
{
    byte p = 0;
#define CAN_RESTART(p, m) true
end:
    do
    :: atomic { restarts > 0 && MAY_RESTART(p) -> CHOOSE(CAN_RESTART);
        if
        :: is_kept = false
        :: DISK -> is_kept = true; select (ran : 0 .. CLIENTS)
        fi;
        d_step { restart(m); sort() } }
    :: atomic { flushes > 0 -> CHOOSE(CAN_RESTART); d_step { flush(m); sort() } }
#if MOVES
    /* The link breaks with the move; what is under way then is in the other configurations. */
    :: atomic { !is_moved && op[AT(0, 1)] == nothing && late[AT(0, 1)] == nothing -> is_moved = true }
#endif
    od
}

/* ---- what must hold ---- */

#if CLIENTS == 2
#define TWO_BELIEVE (BELIEVES(0) && BELIEVES(1))
#define ANY_CLIENT(X) (COUNT(X, 0) + COUNT(X, 1) > 0)
#else
#define TWO_BELIEVE \
    ((BELIEVES(0) && BELIEVES(1)) || (BELIEVES(1) && BELIEVES(2)) || (BELIEVES(0) && BELIEVES(2)))
#define ANY_CLIENT(X) (COUNT(X, 0) + COUNT(X, 1) + COUNT(X, 2) > 0)
#endif
/* A vote that counts, and its key is not there though its master lives on. */
#define COUNTS_WRONGLY(p, m) (IS_VALID(p, m) && !is_gone[AT(p, m)] && key[m] != VALUE(p, m))
/* A key that nobody will release any more. */
#define IS_LEFT(p, m) \
    ((key[m] == VALUE(p, m) && (vote[AT(p, m)] == none || vote[AT(p, m)] == wants) && \
        op[AT(p, m)] == nothing && late[AT(p, m)] == nothing) || \
    (key[m] == FORMER(p, m) && FORMER(p, m) != VALUE(p, m) && late[AT(p, m)] == nothing))

hidden byte one_believer, vote_stands, loss_is_true, orphan_free,
    hold_outlives; /* names of what was violated */

#define LOOKS_AT(n) (ONLY == 0 || ONLY == (n))

active proctype judge()
{
end:
    if
    :: atomic { LOOKS_AT(1) && TWO_BELIEVE -> assert(one_believer) }
    :: atomic { LOOKS_AT(2) && ANY_CLIENT(COUNTS_WRONGLY) -> assert(vote_stands) }
    :: atomic { LOOKS_AT(3) && false_loss -> assert(loss_is_true) }
    :: atomic { LOOKS_AT(5) && was_lost -> assert(hold_outlives) }
    :: atomic { LOOKS_AT(4) && !gave_up && ANY_CLIENT(IS_LEFT) -> assert(orphan_free) }
    fi
}

#ifdef FAIR
/* If client 1 wants the lock no more, then client 0 gets it, again and again. */
ltl everybody_takes {
    (<> (is_done && state[1] == rests)) -> ([]<> (state[0] == holds))
}
#endif

init
{
    atomic {
        for (q : 0 .. CLIENTS - 1) {
            run master(q); run client(q)
        }
    }
}
