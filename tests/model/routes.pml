/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * One name and two nodes, which both serve it for a moment: its slot moves (ASK, MOVED, TRYAGAIN),
 * or the first node fails over to the second, its replica. Two processes; each has a link to each
 * node, and believes that one of them serves the name. Links delay at will, so a request may be read
 * after the change, and an answer after the process has heard of it. Waiters are woken by messages
 * alone: there is no poll. A queue is in grant.pml; here each release wakes all.
 *
 *   MOVES n          so many times the slot moves, there and back
 *   FAILS 1          the first node fails over: it dies, or goes on answering for a while
 *   DROPS n          so many times a link breaks: requests not run yet run late, or never
 *   DIES 0           the first node does not die, but answers until it hears of the second
 *   MAPS 0           a map is read only when a node has said MOVED
 *   WAITS0 WAITS1    of each process, one after the other, each with a field of its own
 *   LEASE END        in ticks of the clock; END is when it stops
 *
 * Broken on purpose:
 *   NO_ASKING        the importing node is asked without ASKING
 *   ASK_CHANGES_MAP  an ASK counts for all requests of the slot
 *   ASK_FOR_ALL      the same, and all of them go behind ASKING
 *   BLIND_REDIRECT   a request is redirected whatever has happened to its tenure
 *   MOVED_IS_NO      MOVED is taken for an answer: the key is not there
 *   TRYAGAIN_FAILS   TRYAGAIN ends the call
 *   NO_FOLLOW        a subscription that has ended with the move is not had anew
 *   NO_SECOND_ASK    nothing is asked when the subscription at the new node stands
 *   NO_TELL          names are not told that their slot has another node
 *   NO_TELL_OF_LOSS  the same, of names that are held
 *   NO_STRAYED       a link that breaks tells the names of its own slots only
 *   OLD_LINK         the link to a node that serves nothing any more is kept
 *   OLD_MAP          the map of any node is believed, however old
 */
#ifndef MOVES
#define MOVES 0
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef DIES
#define DIES 1
#endif
#ifndef MAPS
#define MAPS 1
#endif
#ifndef WAITS0
#define WAITS0 2
#endif
#ifndef WAITS1
#define WAITS1 1
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef END
#define END 2
#endif
#define WAITS(p) ((p) == 0 -> WAITS0 : WAITS1)
#define PIPE 3

mtype = { acquire, release, renew };
mtype = { yes, no, moved, ask, tryagain, unasked };
mtype = { none, waits, holds };
mtype = { serves, migrating, importing, elsewhere, dead }; /* a node, and the name's slot */

#define FIELD(p, n) (1 + (p) * 4 + (n))
#define PROCESS(f) (((f) - 1) / 4)
#define OTHER(k) (1 - (k))
#define LINK(p, k) ((p) * 2 + (k))
#define BIT(n) (1 << (n))
#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define AFTER(t, ticks) ((t) + (ticks) > END -> END + 1 : (t) + (ticks)) /* END + 1: never */

byte now;

/* The nodes: the lock's key (0: none) and its expiry; the slot's state; the epoch of their map. */
byte holder[2], ends[2], epoch[2];
mtype slot[2];
byte moves = MOVES, fails = FAILS, drops = DROPS;

/* command, tenure, when it was sent, behind ASKING, with the lock's key alone, redirected so often */
chan command[4] = [PIPE] of { mtype, byte, byte, bool, bool, byte };
/* command, tenure, verdict, when it was sent, alone, redirected so often */
chan answer[4] = [PIPE] of { mtype, byte, mtype, byte, bool, byte };
/* unread commands of a link that is gone: command, field, ASKING, alone, node */
chan late = [2] of { mtype, byte, bool, bool, byte };

/* The processes. `by` is the node whose answer the validity rests on. */
byte tenure[2], valid[2], by[2];
mtype state[2] = none;
byte owed[2];   /* a bit for each tenure whose release is not answered */
byte unsent[2]; /* and for each of these whose request has ended without an answer */
byte route[2], knows[2]; /* the node that serves the name; the epoch of its map */
bool strayed[2]; /* the route has changed, and the name was not told */
bool asks_soon[2], asking[2], unsure[2];
bool is_due[2], renewing[2], keeps[2]; /* keeps: it will not be released */
bool alone[2]; /* requests declare the lock's key alone */

/* Subscriptions: wanted at node - 1, or 0; does that node know. A message takes no time, for what it
 * makes the process do may take any. */
byte listens[2];
bool is_on[2];

bool false_loss, is_refused, old_word_counts, is_sent_about;

/* Scratch of one step. */
hidden mtype op, verdict;
hidden byte f, n, sent, until, hops, view, asks, narrow;

/* ---- the nodes ---- */

/* As getNodeByQuery() of Redis 7. The queue, the other key that requests declare, is empty here, so
 * while the slot moves it is missing at both nodes. */
inline judge_slot(k)
{
    if
    :: slot[k] == serves -> verdict = yes
    :: slot[k] == migrating ->
        verdict = (holder[k] == 0 -> ask : (narrow -> yes : tryagain))
    :: slot[k] == importing -> verdict = (asks -> (narrow -> yes : tryagain) : moved)
    :: slot[k] == elsewhere -> verdict = moved
    fi
}

inline publish_to(p, k)
{
    if
    :: listens[p] == k + 1 && is_on[p] -> asks_soon[p] = true /* C: hli_wake_on_message */
    :: else -> skip
    fi
}

/* Lua: lock_acquire.lua, lock_release.lua, lock_renew.lua */
inline run_script(k)
{
    if
    :: op == acquire && (holder[k] == 0 || holder[k] == f) ->
        holder[k] = f; ends[k] = LATER(ends[k], AFTER(now, LEASE))
    :: op == renew && holder[k] == f -> ends[k] = LATER(ends[k], AFTER(now, LEASE))
    :: op == release && holder[k] == f ->
        holder[k] = 0; ends[k] = 0;
        publish_to(0, k); publish_to(1, k)
    :: else -> verdict = no
    fi
}

inline serve(p, k)
{
    command[LINK(p, k)]?op, n, sent, asks, narrow, hops;
    f = FIELD(p, n);
    judge_slot(k);
    if
    :: verdict == yes -> run_script(k)
    :: else -> skip
    fi;
    answer[LINK(p, k)]!op, n, verdict, sent, narrow, hops
}

inline serve_late(k)
{
    late?op, f, asks, narrow, _;
    judge_slot(k);
    if
    :: verdict == yes -> run_script(k)
    :: else -> skip
    fi
}

/* The subscription has ended. */
inline end_subscription(p) /* C: hli_pubsub_moved, contention_on_channel_moved */
{
    is_on[p] = false;
#ifndef NO_FOLLOW
    listens[p] = 0; asks_soon[p] = true
#endif
}

inline subscribe(p)
{
    if
    :: slot[listens[p] - 1] == serves || slot[listens[p] - 1] == migrating ->
        is_on[p] = true;
#ifndef NO_SECOND_ASK
        asks_soon[p] = true /* C: hli_wake_on_confirmed */
#endif
    :: else -> end_subscription(p) /* MOVED */
    fi
}

#define HAS_REQUEST(p, k) \
    (slot[k] != dead && nempty(command[LINK(p, k)]) && nfull(answer[LINK(p, k)]))
#ifdef NO_FOLLOW
#define MAY_SUBSCRIBE(k) (slot[k] == serves || slot[k] == migrating)
#else
#define MAY_SUBSCRIBE(k) (slot[k] != dead)
#endif
#define HAS_SUBSCRIBER(p) (listens[p] != 0 && !is_on[p] && MAY_SUBSCRIBE(listens[p] - 1))

active proctype server()
{
end:
    do
    :: atomic { HAS_REQUEST(0, 0) -> serve(0, 0) }
    :: atomic { HAS_REQUEST(0, 1) -> serve(0, 1) }
    :: atomic { HAS_REQUEST(1, 0) -> serve(1, 0) }
    :: atomic { HAS_REQUEST(1, 1) -> serve(1, 1) }
    :: atomic { late?[_, _, _, _, 0] && slot[0] != dead -> serve_late(0) }
    :: atomic { late?[_, _, _, _, 1] -> serve_late(1) }
    :: atomic { HAS_SUBSCRIBER(0) -> subscribe(0) }
    :: atomic { HAS_SUBSCRIBER(1) -> subscribe(1) }
    od
}

/* A node tells the subscribers of a slot that it serves it no more. */
inline tell_subscriber(p, k)
{
    if
    :: listens[p] == k + 1 && is_on[p] -> end_subscription(p)
    :: else -> skip
    fi
}

/* The administrator, or redis-cli: first both nodes are told, then the keys go, then the slot is the
 * new node's, and at last the old one hears of it. MIGRATE is one step: meanwhile the old node does
 * nothing else, and the new one serves no request for a key that was not there to be asked for. */
inline move_slot(k)
{
    if
    :: moves > 0 && slot[k] == serves && slot[OTHER(k)] == elsewhere ->
        moves--; slot[OTHER(k)] = importing; slot[k] = migrating
    :: slot[k] == migrating && holder[k] != 0 ->
        holder[OTHER(k)] = holder[k]; ends[OTHER(k)] = ends[k]; holder[k] = 0; ends[k] = 0
    :: slot[k] == migrating && holder[k] == 0 && slot[OTHER(k)] == importing ->
        slot[OTHER(k)] = serves; epoch[OTHER(k)]++
    :: slot[k] == migrating && slot[OTHER(k)] == serves ->
        slot[k] = elsewhere; epoch[k] = epoch[OTHER(k)];
        tell_subscriber(0, k); tell_subscriber(1, k)
    fi
}

#define IS_BEHIND (holder[1] != holder[0] || ends[1] != ends[0]) /* the replica */

#define MAY_MOVE(k) \
    ((moves > 0 && slot[k] == serves && slot[OTHER(k)] == elsewhere) || slot[k] == migrating)

active proctype cluster()
{
end:
    do
    :: atomic { MAY_MOVE(0) -> move_slot(0) }
    :: atomic { MAY_MOVE(1) -> move_slot(1) }
    :: atomic { fails > 0 && slot[0] == serves && IS_BEHIND ->
        holder[1] = holder[0]; ends[1] = ends[0] }
    :: atomic { fails > 0 && slot[1] == elsewhere -> fails = 0; slot[1] = serves; epoch[1] = 1 }
    :: atomic { FAILS && DIES && slot[0] == serves -> slot[0] = dead; holder[0] = 0; ends[0] = 0 }
    :: atomic { FAILS && slot[0] == serves && slot[1] == serves ->
        slot[0] = elsewhere; epoch[0] = 1; holder[0] = 0; ends[0] = 0 }
    od
}

/* One clock for all. A waiter knows until when the lease lasts that it was told of, and asks then. */
inline expire(k)
{
    if
    :: holder[k] != 0 && now >= ends[k] ->
        holder[k] = 0; ends[k] = 0; /* C: hli_wake_on_timer */
        asks_soon[0] = asks_soon[0] || state[0] == waits;
        asks_soon[1] = asks_soon[1] || state[1] == waits
    :: else -> skip
    fi
}

inline let_run_out(p)
{
    if
    :: valid[p] != 0 && now >= valid[p] -> valid[p] = 0 /* C: loss_by_clock */
    :: else -> skip
    fi
}

active proctype clock()
{
end:
    do
    :: atomic { now < END -> now++; expire(0); expire(1); let_run_out(0); let_run_out(1) }
    od
}

/* ---- a process ---- */

#define CURRENT(x) (state[p] == (x) && n == tenure[p])

#ifdef ASK_FOR_ALL
#define IS_BEHIND_ASKING true
#else
#define IS_BEHIND_ASKING false
#endif

/* To the node that serves the name now. A renewal has the lock's key alone. */
inline send(o, x, redirects) /* C: hli_name_link, hli_command_declare */
{
    command[LINK(p, route[p])]!o, x, now, IS_BEHIND_ASKING, (alone[p] || (o) == renew), redirects
}

inline stop_listening() /* C: hli_contention_stop_listening */
{
    listens[p] = 0; is_on[p] = false
}

inline send_release(x) /* C: release_send */
{
    owed[p] = owed[p] | BIT(x); /* of tenure 2: never, unless broken */
    unsent[p] = unsent[p] & ~BIT(x); /* of tenure 2: never, unless broken */
    send(release, x, 0)
}

inline rest() /* no tenure */
{
    state[p] = none;
    valid[p] = 0; by[p] = 0;
    asks_soon[p] = false; asking[p] = false; unsure[p] = false;
    is_due[p] = false; renewing[p] = false; keeps[p] = false;
    stop_listening()
}

inline begin_wait() /* C: ask_begin_tenure */
{
    tenure[p]++;
    state[p] = waits;
    asks_soon[p] = true
}

inline ask_node() /* C: hli_ask_plan */
{
    asks_soon[p] = false; asking[p] = true; unsure[p] = false;
    send(acquire, tenure[p], 0)
}

/* With `keeps` it is never released. (Of process 1 alone, as a call that is cancelled is process
 * 0's: each makes many states.) */
inline begin_hold(k) /* C: ask_is_ours, hli_hold_begin */
{
    until = AFTER(sent, LEASE);
    if
    :: now < until ->
        stop_listening();
        state[p] = holds; valid[p] = until; by[p] = (FAILS -> k : 0);
        asks_soon[p] = false; is_due[p] = true;
        if
        :: p == 1 -> keeps[p] = true
        :: keeps[p] = false
        fi
    :: else -> asks_soon[p] = true
    fi
}

inline lose() /* C: hli_loss_declare */
{
    false_loss = false_loss || holder[1] == FIELD(p, tenure[p]) ||
        (!FAILS && holder[0] == FIELD(p, tenure[p]));
    valid[p] = 0
}

/* Does an answer of this node count, though the process knows of the one that has taken over? */
inline note_word_of(k)
{
    old_word_counts = old_word_counts || (FAILS && k == 0 && knows[p] > 0)
}

inline take_acquire_answer(k)
{
    if
    :: CURRENT(waits) && verdict == yes -> asking[p] = false; note_word_of(k); begin_hold(k)
    :: CURRENT(waits) && verdict == no -> /* C: hli_busy_answered, busy_sleep */
        asking[p] = false;
        if
        :: listens[p] == 0 -> listens[p] = route[p] + 1 /* C: contention_subscribe */
        :: else -> skip
        fi
    :: else -> skip /* C: hli_ask_done */
    fi
}

inline take_renew_answer(k) /* C: renewal_apply */
{
    if
    :: CURRENT(holds) ->
        renewing[p] = false;
        if
        :: valid[p] != 0 && verdict == yes ->
            note_word_of(k);
            valid[p] = LATER(valid[p], AFTER(sent, LEASE)); by[p] = (FAILS -> k : 0)
        :: valid[p] != 0 && verdict == no -> lose()
        :: else -> skip
        fi
    :: else -> skip
    fi
}

#ifdef BLIND_REDIRECT
#define IS_WANTED true
#else
#define IS_WANTED (op != acquire || CURRENT(waits)) /* C: turn_is_wanted */
#endif

/* It did not run: its sender decides anew, and sends it where the route leads now. */
inline take_bounce(redirects) /* C: ask_acquire_done, renewal_keep_wanted, release_answered */
{
    if
    :: op == renew && !(CURRENT(holds) && valid[p] != 0) ->
        renewing[p] = renewing[p] && !CURRENT(holds)
    :: op == acquire && !IS_WANTED -> skip
    :: else -> send(op, n, redirects)
    fi
}

inline take_moved(k) /* C: redirect_moved, hli_cluster_set_slot */
{
    if
    :: route[p] != OTHER(k) -> route[p] = OTHER(k); strayed[p] = true
    :: else -> skip
    fi;
    take_bounce(hops + 1)
}

#ifdef NO_ASKING
#define ASKING false
#else
#define ASKING true
#endif

inline take_ask(k) /* C: redirect_ask, hli_link_send_asking */
{
#if defined ASK_CHANGES_MAP || defined ASK_FOR_ALL
    route[p] = OTHER(k);
#endif
    if
    :: IS_WANTED -> command[LINK(p, OTHER(k))]!op, n, now, ASKING, narrow, hops + 1
    :: !IS_WANTED -> skip
    fi
}

inline take_answer(k)
{
    answer[LINK(p, k)]?op, n, verdict, sent, narrow, hops;
    is_sent_about = is_sent_about || hops > MOVES + FAILS;
    if
#ifdef MOVED_IS_NO
    :: verdict == moved && op == renew -> verdict = no
#endif
    :: else -> skip
    fi;
    if
    :: verdict == moved -> take_moved(k)
    :: verdict == ask -> take_ask(k)
    :: verdict == tryagain -> /* C: hli_command_goes_alone */
#ifdef TRYAGAIN_FAILS
        is_refused = true
#else
        alone[p] = true; take_bounce(0)
#endif
    :: (verdict == yes || verdict == no) && op == acquire -> take_acquire_answer(k)
    :: (verdict == yes || verdict == no) && op == renew -> take_renew_answer(k)
    :: (verdict == yes || verdict == no) && op == release -> /* C: release_is_answered */
        owed[p] = owed[p] & ~BIT(n)
    fi
}

/* A request in flight ends without an answer. */
inline forget_request() /* C: hli_ask_answered, renewal_failed, release_answered */
{
    if
    :: op == acquire && CURRENT(waits) -> asking[p] = false; unsure[p] = true
    :: op == renew && CURRENT(holds) -> renewing[p] = false; is_due[p] = true
    :: op == release -> unsent[p] = unsent[p] | BIT(n)
    :: else -> skip
    fi
}

inline cut(k)
{
    do
    :: nempty(command[LINK(p, k)]) ->
        command[LINK(p, k)]?op, n, _, asks, narrow, _;
        forget_request();
        if
        :: DROPS && nfull(late) -> late!op, FIELD(p, n), asks, narrow, k
        :: skip
        fi
    :: empty(command[LINK(p, k)]) -> break
    od;
    do
    :: nempty(answer[LINK(p, k)]) ->
        answer[LINK(p, k)]?op, n, _, _, _, _;
        forget_request()
    :: empty(answer[LINK(p, k)]) -> break
    od
}

inline send_unsent(x)
{
    if
    :: unsent[p] & BIT(x) -> send_release(x)
    :: else -> skip
    fi
}

/* What is due at the node that serves the name now. */
inline begin_anew() /* C: reconnect_name, reconnect_one, hli_release_on_link_up */
{
    send_unsent(1);
    send_unsent(2);
    asks_soon[p] = asks_soon[p] || state[p] == waits;
    is_due[p] = is_due[p] || state[p] == holds
}

inline hear_of_move() /* C: hli_client_slots_moved, reconnect_moved_name, hli_wake_on_moved */
{
    strayed[p] = false;
    stop_listening();
    begin_anew()
}

#define SAYS(k) (slot[k] == serves || slot[k] == migrating -> (k) : OTHER(k))
#ifdef OLD_MAP
#define IS_NEW(k) true
#else
#define IS_NEW(k) (epoch[k] >= knows[p]) /* C: cluster_on_scouted */
#endif
#define HAS_NEWS(k) \
    (slot[k] != dead && IS_NEW(k) && (MAPS || strayed[p]) && \
        (SAYS(k) != route[p] || strayed[p] || epoch[k] > knows[p]))

/* A map, of this node. In a failover the other one has no slots any more; in a move it may. */
inline read_map(k) /* C: cluster_use, cluster_set_slots, hli_cluster_retire */
{
    view = SAYS(k);
    knows[p] = epoch[k];
    strayed[p] = strayed[p] || view != route[p];
    route[p] = view;
    if
#ifndef OLD_LINK
    :: strayed[p] -> cut(OTHER(view))
#endif
    :: !FAILS || !strayed[p] -> skip
#ifdef OLD_LINK
    :: else -> skip
#endif
    fi;
    if
#ifdef NO_TELL
    :: strayed[p] -> strayed[p] = false
#elif defined(NO_TELL_OF_LOSS)
    :: strayed[p] && state[p] == holds -> strayed[p] = false
    :: strayed[p] && state[p] != holds -> hear_of_move()
#else
    :: strayed[p] -> hear_of_move()
#endif
    :: else -> skip /* never, unless broken */
    fi
}

/* A link breaks, and is up again. A request of ours may have been under way there though the route
 * leads to the other node: behind ASKING, or since before a move. */
inline drop(k)
{
    drops--;
    cut(k);
    if
    :: listens[p] == k + 1 -> is_on[p] = false
    :: else -> skip
    fi;
    if
    :: route[p] == k -> begin_anew() /* C: hli_client_link_up, reconnect_name_of */
    :: route[p] != k -> /* C: hli_client_link_down, reconnect_strayed_name */
#ifndef NO_STRAYED
        send_unsent(1);
        send_unsent(2);
        asks_soon[p] = asks_soon[p] || unsure[p]
#else
        skip
#endif
    fi
}

proctype client(byte p)
{
#define MAY_SEND (len(command[LINK(p, 0)]) < PIPE && len(command[LINK(p, 1)]) < PIPE)
#define MAY_SEND_TWO(k) (len(command[LINK(p, k)]) + 1 < PIPE)
#define MAY_DROP(k) \
    (drops > 0 && (route[p] == k || MAY_SEND_TWO(route[p])) && \
        (nempty(command[LINK(p, k)]) || nempty(answer[LINK(p, k)])))

end:
    do
    /* C: acquire_start */
    :: atomic { state[p] == none && tenure[p] < WAITS(p) -> begin_wait() }
    :: atomic { state[p] == waits && asks_soon[p] && !asking[p] && MAY_SEND -> ask_node() }
    /* C: acquire_check, hli_ask_abandon */
    :: atomic { p == 0 && state[p] == waits && MAY_SEND -> send_release(tenure[p]); rest() }
    /* C: renewal_send_formatted */
    :: atomic { state[p] == holds && valid[p] != 0 && is_due[p] && !renewing[p] && MAY_SEND ->
        is_due[p] = false; renewing[p] = true; send(renew, tenure[p], 0) }
    /* C: hli_release_start */
    :: atomic { state[p] == holds && !(keeps[p] && valid[p] != 0) && MAY_SEND ->
        send_release(tenure[p]); rest() }
    :: atomic { nempty(answer[LINK(p, 0)]) && MAY_SEND -> take_answer(0) }
    :: atomic { nempty(answer[LINK(p, 1)]) && MAY_SEND -> take_answer(1) }
    /* C: cluster_begin_round */
    :: atomic { HAS_NEWS(0) && MAY_SEND_TWO(SAYS(0)) -> read_map(0) }
    :: atomic { HAS_NEWS(1) && MAY_SEND_TWO(SAYS(1)) -> read_map(1) }
    :: atomic { MAY_DROP(0) -> drop(0) }
    :: atomic { MAY_DROP(1) -> drop(1) }
#ifdef ASK_FOR_ALL
    /* Another name of the slot was told ASK. */
    :: atomic { slot[0] == migrating && route[p] == 0 -> route[p] = 1 }
#endif
    od
}

/* ---- what must hold ---- */

#define HAS(p, k) (holder[k] == FIELD(p, tenure[p]))
/* In a failover: a process that was told so by the new master. */
#define BELIEVES_WRONGLY(p) \
    (valid[p] != 0 && (FAILS -> by[p] == 1 && !HAS(p, 1) : !HAS(p, 0) && !HAS(p, 1)))
#define BOTH_BELIEVE (!FAILS && valid[0] != 0 && valid[1] != 0)
#define IS_SILENT(l) (empty(command[l]) && empty(answer[l]))
#define IS_AT_REST(p) \
    (state[p] == none && owed[p] == 0 && IS_SILENT(LINK(p, 0)) && IS_SILENT(LINK(p, 1)))
#define IS_OF(k, p) (holder[k] != 0 && PROCESS(holder[k]) == (p))
#define HAS_ORPHAN(p) (IS_AT_REST(p) && (IS_OF(0, p) || IS_OF(1, p)))
#define MASTER (slot[1] == serves -> 1 : 0)
#define SLEEPS(p) (state[p] == waits && (holder[MASTER] == 0 || HAS(p, MASTER)))
#define IS_DECEIVED(p) (valid[p] != 0 && !HAS(p, MASTER))

hidden byte believer_holds, loss_is_true, orphan_free, is_served, few_redirects, new_master_counts,
    sleeper_is_told, release_ends, loss_is_told; /* names of what was violated */

active proctype judge()
{
end:
    if
    :: atomic { BELIEVES_WRONGLY(0) || BELIEVES_WRONGLY(1) || BOTH_BELIEVE ->
        assert(believer_holds) }
    :: atomic { false_loss -> assert(loss_is_true) }
    :: atomic { MOVES == 1 && !DROPS && (HAS_ORPHAN(0) || HAS_ORPHAN(1)) -> assert(orphan_free) }
    :: atomic { is_refused -> assert(is_served) }
    :: atomic { is_sent_about -> assert(few_redirects) }
    :: atomic { old_word_counts -> assert(new_master_counts) }
    /* Nothing more will happen by itself. */
    :: atomic { timeout && (SLEEPS(0) || SLEEPS(1)) -> assert(sleeper_is_told) }
    :: atomic { timeout && (owed[0] != 0 || owed[1] != 0) -> assert(release_ends) }
    :: atomic { timeout && (IS_DECEIVED(0) || IS_DECEIVED(1)) -> assert(loss_is_told) }
    fi
}

init
{
    atomic {
        slot[0] = serves; slot[1] = elsewhere;
        run client(0); run client(1)
    }
}
