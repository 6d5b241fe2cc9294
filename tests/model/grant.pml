/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Hand-over between two processes: which process may believe that it holds, though messages are
 * late, lost or bounced, or links cut. One name; a server that runs one script at a time; per process
 * a command link with its answers in order, and a link for messages; links lose or delay at will. A
 * stopped or slow process is one that takes no step while the clock goes on.
 *
 *   BOUNCES n        so many commands come back without having run (NOSCRIPT)
 *   DROPS n          so many times a command link breaks: requests not run yet run late, or never
 *   WAITS0 WAITS1    of each process, one after the other, each with a field of its own
 *   LEASE CLAIM END  in ticks of the clock; END is when it stops
 *
 *   NO_QUEUE         nobody queues, so nothing is granted: to look at the other faults alone
 *
 * Of process 1 alone, for each of them makes many states (0 or 1):
 *   TWO_STEPS        an acquire is decided, and sent later: its thread has lost its core between
 *   WRITES           what it holds is released with a value for other data (set_and_release)
 *   KILLED           of its link that broke nothing runs any more once there is another
 *
 * Broken on purpose, to see that the properties see it:
 *   NO_AGE_RULE      a grant counts from its arrival
 *   NO_VOID_RULE     a grant counts from the last busy answer, even if it is older than that
 *   PUBLISH_FIRST    the message goes out first, and the write may be refused
 *   ONE_FIELD        every wait of a process has the same field
 *   BLIND_RESEND     a bounced request is sent again, whatever has happened to its tenure
 *   ANCHOR_ANEW      on a new link grants count from the first request there
 *   BUSY_ENDS_HOLD   a busy answer counts also when a grant has overtaken it
 *   LATE_SEND        an acquire that was decided is sent although its tenure is over
 *   UNSURE_WRITE     it is sent though the link broke before that answer
 *   WRITE_AT_ONCE    a release with a value does not wait for the answer of an acquire
 */
#ifndef BOUNCES
#define BOUNCES 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef WAITS0
#define WAITS0 2
#endif
#ifndef WAITS1
#define WAITS1 1
#endif
#ifndef LEASE
#define LEASE 3
#endif
#ifndef CLAIM
#define CLAIM 2
#endif
#ifndef END
#define END 4
#endif
#ifndef TWO_STEPS
#define TWO_STEPS 0
#endif
#ifndef WRITES
#define WRITES 0
#endif
#ifndef KILLED
#define KILLED 0
#endif
#define WAITS(p) ((p) == 0 -> WAITS0 : WAITS1)
#define PIPE 3 /* commands, and answers, that a link holds */

mtype = { acquire, release, write, renew };
mtype = { yes, no, bounced };
mtype = { none, waits, holds };

#ifdef ONE_FIELD
#define FIELD(p, n) (1 + (p) * 4)
#define HAS_FIELD_TO_SPARE false /* for the next wait, while the last one is not released */
#else
#define FIELD(p, n) (1 + (p) * 4 + (n))
#define HAS_FIELD_TO_SPARE true
#endif
#define PROCESS(f) (((f) - 1) / 4)
#define NUMBER(f) (((f) - 1) % 4)

byte now;

/* The keys in Redis: the hash with its one field (0: no key) and its expiry; the queue. */
byte holder, ends;
chan queue = [3] of { byte };
#ifdef NO_QUEUE
#define QUEUE 0
#else
#define QUEUE 3
#endif

/* command, tenure, when it was sent */
chan command[2] = [PIPE] of { mtype, byte, byte };
/* command, tenure, verdict, when it was sent; of an acquire: the server's time if it is busy, or 1 if
 * it was free */
chan answer[2] = [PIPE] of { mtype, byte, mtype, byte, byte };
chan grant[2] = [2] of { byte, byte }; /* field, the server's time */
chan late = [2] of { mtype, byte };    /* unread commands of a link that is gone, by field */
byte bounces = BOUNCES, drops = DROPS;

/* The processes' state: their tenure, its state, and the end of its validity (0: not valid). */
byte tenure[2], valid[2];
mtype state[2] = none;
byte owed[2];  /* a bit for each tenure whose release is not answered */
byte later[2]; /* and for each that is lost, and not released yet by its user */
bool false_loss;

byte value;      /* of process 1: its tenure whose release carries a value; 0: none */
bool overtaken;  /* others have had the key since its hold began */
bool overwrites; /* and it was written all the same */

#define BIT(n) (1 << (n))
#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define AFTER(t, ticks) ((t) + (ticks) > END -> END + 1 : (t) + (ticks)) /* END + 1: never */

/* Scratch of one step. */
hidden mtype op, verdict;
hidden byte fresh, f, n, next, sent, seen, until;

/* ---- the server ---- */

/* Lua: lock_acquire.lua */
inline script_acquire()
{
    if
    :: holder == f -> ends = LATER(ends, AFTER(now, LEASE)); verdict = yes
    :: holder == 0 ->
        holder = f; ends = AFTER(now, LEASE); verdict = yes; fresh = WRITES;
        do /* whoever has vanished from the waiters is forgotten with them */
        :: nempty(queue) -> queue?_
        :: empty(queue) -> break
        od
    :: holder != f && holder != 0 ->
        verdict = no;
        if
        :: queue??[eval(f)] || len(queue) == QUEUE -> skip
        :: else -> queue!f
        fi
    fi
}

/* A message is delivered once, or never. */
inline publish_grant()
{
    if
    :: len(grant[PROCESS(next)]) < 2 -> grant[PROCESS(next)]!next, now
    :: skip
    fi
}

/* The first waiter in the queue that is of another process. */
inline pick_next()
{
    next = 0;
    do
    :: next == 0 && nempty(queue) ->
        queue?next;
        if
        :: PROCESS(next) == PROCESS(f) -> next = 0
        :: PROCESS(next) != PROCESS(f) -> skip
        :: DROPS > 0 -> next = 0 /* whose link for messages is down */
        fi
    :: next != 0 || empty(queue) -> break
    od
}

inline hand_over()
{
    holder = next;
    ends = AFTER(now, CLAIM)
}

/* Lua: lock_release.lua */
inline script_release()
{
    if
    :: holder == f ->
        verdict = yes;
        pick_next();
        if
        :: next == 0 -> holder = 0; ends = 0
#ifdef PUBLISH_FIRST
        :: next != 0 -> publish_grant(); holder = 0; ends = 0
        :: next != 0 -> publish_grant(); hand_over()
#else
        :: next != 0 -> hand_over(); publish_grant()
#endif
        fi
    :: holder != f ->
        verdict = no;
        if
        :: queue??[eval(f)] -> queue??eval(f)
        :: else -> skip
        fi
    fi
}

/* Lua: lock_renew.lua */
inline script_renew()
{
    if
    :: holder == f -> ends = LATER(ends, AFTER(now, LEASE)); verdict = yes
    :: holder != f -> verdict = no
    fi
}

#define WRITER_HAS_HELD (state[1] == holds || value != 0)

inline run_script()
{
    fresh = 0;
    if
    :: op == acquire -> script_acquire()
    :: op == release || op == write -> /* Lua: fence_release.lua */
        overwrites = overwrites || (op == write && holder == f && overtaken);
        script_release()
    :: op == renew -> script_renew()
    fi;
    overtaken = WRITES && WRITER_HAS_HELD && (overtaken || (holder != 0 && PROCESS(holder) == 0))
}

inline serve(p)
{
    command[p]?op, n, sent;
    f = FIELD(p, n);
    if
    :: bounces > 0 -> bounces--; verdict = bounced
    :: skip; run_script()
    fi;
    answer[p]!op, n, verdict, (op == release || op == write -> 0 : sent),
        (op == acquire && verdict == no -> now : (verdict == yes && fresh))
}

active proctype server()
{
end:
    do
    :: atomic { nempty(command[0]) && nfull(answer[0]) -> serve(0) }
    :: atomic { nempty(command[1]) && nfull(answer[1]) -> serve(1) }
    :: atomic { nempty(late) -> late?op, f; run_script() }
    od
}

/* One clock for all; a key that expires and a validity that ends do so with it. */
inline let_expire(p)
{
    if
    :: valid[p] != 0 && now >= valid[p] -> valid[p] = 0
    :: else -> skip
    fi
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
        let_expire(0);
        let_expire(1)
    }
    od
}

/* ---- a process ---- */

#define CURRENT(x) (state[p] == (x) && n == tenure[p])

#define IN_TWO_STEPS (TWO_STEPS && p == 1)
#define WITH_VALUE (WRITES && p == 1)
#define HAS_VALUE(x) (WITH_VALUE && (x) == value)

inline forget_request(still_asks)
{
    asking = still_asks; anchored = false; anchor = 0; busy_at = 0
}

inline ask() /* C: hli_ask_plan, hli_turn_ask */
{
    asking = true;
    if
    :: IN_TWO_STEPS -> unsent = tenure[p]
    :: !IN_TWO_STEPS -> command[p]!acquire, tenure[p], now
    fi;
#ifdef ANCHOR_ANEW
    if
    :: !anchored -> anchored = true; anchor = now
    :: else -> skip
    fi
#endif
}

inline send_release(x) /* C: release_send */
{
    command[p]!(HAS_VALUE(x) -> write : release), x, 0;
    owed[p] = owed[p] | BIT(x)
}

inline begin_release(x) /* C: hli_releasing_begin, hli_release_plan */
{
    if
    :: !is_down -> send_release(x)
    :: is_down -> owed[p] = owed[p] | BIT(x) /* sent when it is up again */
    fi
}

#ifdef LATE_SEND
#define IS_WANTED true
#else
#define IS_WANTED (state[p] != none && unsent == tenure[p]) /* C: turn_is_wanted */
#endif

/* Sends the decided request. Not while the link is down, and not for a tenure that is over; then it
 * is as if nothing had been asked. */
inline send_decided() /* C: hli_turn_end, hli_link_send */
{
    if
    :: !is_down && IS_WANTED -> command[p]!acquire, unsent, now
    :: else ->
        asking = false;
        if
        :: held_back -> held_back = false; begin_release(unsent) /* C: hli_release_behind */
        :: !held_back -> skip
        fi
    fi;
    unsent = 0
}

/* The hold begins, if its time is not over yet; else it is asked for again. */
inline begin_hold() /* C: hli_hold_begin, hli_hold_accept */
{
    if
    :: now < until ->
        state[p] = holds; valid[p] = until; renewed = false;
        granted_at = (WITH_VALUE -> seen : 0);
        forget_request(WITH_VALUE && asking)
    :: else -> skip
    fi
}

inline begin_wait() /* C: ask_begin_tenure */
{
    tenure[p]++;
    state[p] = waits;
    anchored = true; anchor = now;
    ask()
}

inline leave() /* C: hli_ask_abandon, hli_releasing_begin, release_send */
{
    begin_release(tenure[p]);
    state[p] = none;
    forget_request(false)
}

#ifdef WRITE_AT_ONCE
#define AWAITS_ANSWER false
#else
#define AWAITS_ANSWER asking /* C: release_awaits_answer */
#endif

/* An acquire that had no answer when the link broke may run until the next one is up, and put the
 * field into a lock that others have had. */
#ifdef UNSURE_WRITE
#define IS_UNSURE false
#else
#define IS_UNSURE (is_down && asking && unsent == 0)
#endif

inline end_hold() /* C: release_hold, hli_releasing_begin */
{
    if
    :: WITH_VALUE && valid[p] != 0 && !IS_UNSURE -> value = tenure[p]; held_back = AWAITS_ANSWER
    :: else -> skip
    fi;
    valid[p] = 0;
    if
    :: held_back -> owed[p] = owed[p] | BIT(tenure[p])
    :: !held_back -> begin_release(tenure[p])
    fi;
    state[p] = none;
    renewed = false; asking = false
}

/* Others of the process contend from now on, under a field of their own. */
inline leave_lost() /* C: hli_loss_declare */
{
    later[p] = later[p] | BIT(tenure[p]);
    state[p] = none;
    renewed = false
}

inline release_what_is_lost(x) /* C: release_lost */
{
    later[p] = later[p] & ~BIT(x);
    send_release(x)
}

inline lose() /* C: hli_loss_declare */
{
    false_loss = false_loss || (valid[p] != 0 && holder == FIELD(p, tenure[p]));
    valid[p] = 0
}

/* Had others the key between the grant and this answer? */
#define HAS_RUN_OUT /* C: hli_grant_stood, grant_ran_out */ \
    ((verdict == yes && seen) || (verdict == no && seen > granted_at))

inline forget_value() /* C: release_drop_write */
{
    value = 0; overtaken = false
}

inline take_acquire_answer()
{
    if
    :: CURRENT(waits) && verdict == yes -> /* C: ask_is_ours */
        asking = false;
        until = AFTER(sent, LEASE);
        begin_hold()
    :: CURRENT(waits) && verdict == no -> /* C: hli_busy_answered, busy_set_anchor */
        asking = false;
        anchored = true; anchor = sent; busy_at = seen
    :: CURRENT(holds) && verdict == yes && valid[p] != 0 -> /* C: hli_grant_crossed */
        asking = false;
        valid[p] = LATER(valid[p], AFTER(sent, LEASE))
    :: CURRENT(holds) && WITH_VALUE && verdict == no && valid[p] != 0 -> asking = false
    :: held_back && HAS_VALUE(n) -> /* C: hli_release_behind */
        if
        :: HAS_RUN_OUT -> forget_value()
        :: else -> skip
        fi;
        held_back = false; send_release(n)
#ifdef BUSY_ENDS_HOLD
    :: CURRENT(holds) && verdict == no && valid[p] != 0 -> lose()
#endif
    :: else -> skip /* C: hli_ask_done */
    fi
}

inline take_renew_answer() /* C: renewal_apply */
{
    if
    :: CURRENT(holds) && valid[p] != 0 && verdict == yes -> /* C: renewal_succeeded */
        valid[p] = LATER(valid[p], AFTER(sent, LEASE))
    :: CURRENT(holds) && valid[p] != 0 && verdict == no -> lose()
    :: else -> skip
    fi
}

inline take_bounce()
{
    if
#ifdef BLIND_RESEND
    :: skip; command[p]!op, n, sent
#else
    :: op == acquire && CURRENT(waits) -> ask()                     /* C: ask_acquire_done */
    :: op == renew && CURRENT(holds) -> command[p]!renew, n, now    /* C: renewal_keep_wanted */
    :: op == acquire && held_back && HAS_VALUE(n) -> held_back = false; send_release(n)
    :: op == release || op == write -> send_release(n)              /* C: release_answered */
    :: else -> skip
#endif
    fi
}

inline take_answer()
{
    answer[p]?op, n, verdict, sent, seen;
    if
    :: verdict == bounced -> take_bounce()
    :: verdict != bounced && op == acquire -> take_acquire_answer()
    :: verdict != bounced && op == renew -> take_renew_answer()
    :: verdict != bounced && (op == release || op == write) -> /* C: release_is_answered */
        owed[p] = owed[p] & ~BIT(n);
        if
        :: HAS_VALUE(n) -> forget_value()
        :: else -> skip
        fi
    fi
}

/* It was written after a certain request was sent, the first of this field or the last that was
 * answered busy, and for the time of a claim. One from before that answer is void: the field had
 * the lock, and lost it again. On a new link no request anchors it until the next busy
 * answer. */
inline judge_grant() /* C: grant_valid_until */
{
#ifdef NO_AGE_RULE
    until = AFTER(now, CLAIM)
#else
    if
    :: !anchored -> until = 0
    :: anchored && seen >= busy_at -> until = AFTER(anchor, CLAIM)
#ifdef NO_VOID_RULE
    :: anchored && seen < busy_at -> until = AFTER(anchor, CLAIM)
#else
    :: anchored && seen < busy_at -> until = 0
#endif
    fi
#endif
}

inline take_grant() /* C: grant_arrived, grant_take */
{
    grant[p]?f, seen;
    n = NUMBER(f);
    if
#ifdef ONE_FIELD
    :: state[p] == waits -> judge_grant(); begin_hold()
    :: else -> skip
#else
    :: CURRENT(waits) -> judge_grant(); begin_hold()
    :: /* C: hli_name_tenure, hli_releasing_orphan */
       !CURRENT(waits) && !CURRENT(holds) && !((owed[p] | later[p]) & BIT(n)) -> send_release(n)
    :: else -> skip
#endif
    fi
}

inline send_owed(x)
{
    if
    :: owed[p] & BIT(x) -> send_release(x)
    :: else -> skip
    fi
}

/* Both links break together. Some requests that were not run yet run late; requests that were run
 * get no answer; messages are lost. */
inline cut()
{
    drops--;
    do
    :: nempty(command[p]) ->
        command[p]?op, n, _;
        if
        :: nfull(late) -> late!op, FIELD(p, n)
        :: !KILLED || full(late) -> skip
        fi
    :: empty(command[p]) -> break
    od;
    do
    :: nempty(answer[p]) -> answer[p]?_, _, _, _, _
    :: empty(answer[p]) -> break
    od;
    do
    :: nempty(grant[p]) -> grant[p]?_, _
    :: empty(grant[p]) -> break
    od;
    asking = (unsent != 0 || (asking && state[p] == holds));
    if
    :: held_back && unsent == 0 -> held_back = false; forget_value() /* C: hli_release_behind */
    :: else -> skip
    fi
}

/* Releases go first; what was said on the old link anchors nothing any more. */
inline link_again() /* C: reconnect_one, hli_release_on_link_up */
{
    send_owed(1);
    send_owed(2);
    asking = (unsent != 0); anchored = false; anchor = 0; busy_at = 0;
    renewed = false
}

/* The server has run what it will of the old link. */
inline kill() /* C: handshake_add_kill */
{
    do
    :: nempty(late) -> late?_, _
    :: empty(late) -> break
    od;
    do
    :: nempty(grant[p]) -> grant[p]?_, _
    :: empty(grant[p]) -> break
    od
}

proctype client(byte p)
{
    byte anchor;  /* when the request was sent that grants are counted from */
    bool anchored;
    byte busy_at; /* the server's time of the last busy answer */
    bool asking;  /* a request is on its way, or decided */
    bool renewed;
    bool is_down; /* its link */
    byte unsent;  /* the tenure whose acquire is decided, and not sent; 0: none */
    byte granted_at; /* the server's time */
    bool held_back;  /* the release with a value: until an acquire is answered */

#define MAY_SEND (nfull(command[p]) && !is_down)
#define MAY_RELEASE nfull(command[p]) /* while the link is down: when it is up */

end:
    do
    /* C: acquire_start */
    :: atomic { state[p] == none && tenure[p] < WAITS(p) && unsent == 0 && MAY_SEND ->
        begin_wait() }
    /* C: hli_wake_on_timer, hli_wake_on_message */
    :: atomic { state[p] == waits && !asking && MAY_SEND -> ask() }
    /* C: hli_turn_end */
    :: atomic { unsent != 0 && MAY_RELEASE -> send_decided() }
    /* C: acquire_check */
    :: atomic { state[p] == waits && MAY_RELEASE -> leave() }
    /* C: renewal_send */
    :: atomic { valid[p] != 0 && !renewed && MAY_SEND ->
        renewed = true; command[p]!renew, tenure[p], now }
    /* C: hli_release_start */
    :: atomic { state[p] == holds && MAY_RELEASE -> end_hold() }
    :: atomic { state[p] == holds && valid[p] == 0 && HAS_FIELD_TO_SPARE -> leave_lost() }
    :: atomic { (later[p] & BIT(1)) && MAY_SEND -> release_what_is_lost(1) }
    :: atomic { (later[p] & BIT(2)) && MAY_SEND -> release_what_is_lost(2) }
    :: atomic { nempty(answer[p]) && nfull(command[p]) -> take_answer() }
    :: atomic { nempty(grant[p]) && MAY_SEND -> take_grant() }
    :: atomic { drops > 0 && (!KILLED || p == 1) && (nempty(command[p]) || nempty(answer[p])) ->
        cut();
        if
        :: KILLED -> is_down = true
        :: !KILLED -> link_again()
        fi
    }
    :: atomic { is_down -> is_down = false; kill(); link_again() }
    od
}

/* ---- what must hold ---- */

#define BELIEVES_WRONGLY(p) (valid[p] != 0 && holder != FIELD(p, tenure[p]))
#define IS_SILENT(p) (empty(command[p]) && empty(answer[p]) && empty(grant[p]))
#define IS_AT_REST(p) (state[p] == none && owed[p] == 0 && later[p] == 0 && IS_SILENT(p))
#define HAS_ORPHAN(p) (IS_AT_REST(p) && holder != 0 && PROCESS(holder) == (p))

hidden byte believer_holds, orphan_free, loss_is_true, value_is_ours; /* names of what was violated */

active proctype judge()
{
end:
    if
    :: atomic { BELIEVES_WRONGLY(0) || BELIEVES_WRONGLY(1) -> assert(believer_holds) }
    :: atomic { (DROPS == 0 || KILLED) && (HAS_ORPHAN(0) || HAS_ORPHAN(1)) -> assert(orphan_free) }
    :: atomic { false_loss -> assert(loss_is_true) }
    :: atomic { overwrites -> assert(value_is_ours) }
    fi
}

init
{
    atomic { run client(0); run client(1) }
}
