/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Every waiter gets its turn. A process whose threads pass the lock among themselves without end,
 * another of ours with one thread, and a client of Redisson's, which stands in no queue and tells no
 * other client that it waits. Every process that can go on does so some time (weak fairness). One
 * more thing is assumed: a client of Redisson's that has received a release's message tries within
 * the moment for which our clients yield.
 *
 *   REDISSON n       its client comes so many times; 9: without end
 *   QUIET            our other process is not there
 *   NO_QUEUE         the server refuses the queue (maxmemory), and so counts nobody in it
 *   LOSSES n         so many messages are lost
 *   DEAF             no message reaches our other process: its requests are its signs of life
 *   FORCED           a thread of the crowd hangs in its hold, and an operator takes the key away
 *
 * Broken on purpose:
 *   SKIPS_DEAF       a release passes over who does not listen
 *   WANT_ONCE        a waiter says that it wants the lock with its first request alone
 *   NO_WORD          a tenure is kept without word that nobody waits
 *   NO_YIELD         a release never lets Redisson's go first
 *   NO_STANDING_BACK it does, but ours do not stand back
 *   NO_LOOK          waiters behind a hold of their own process rely on the message of a force release
 */
#ifndef REDISSON
#define REDISSON 0
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#define FOR_EVER 9
#define WORD 2 /* so many holds are over before it is too old */

mtype = { nobody, crowd, single, redisson };

mtype holder = nobody;
chan queue = [2] of { mtype };
byte losses = LOSSES;

/* The crowd: its tenure, and what it knows of others. */
bool has_tenure, is_wanted;
byte age = WORD; /* of its word, in holds */
bool asks_word;
chan word = [1] of { bool };   /* the answer: does somebody wait? */
chan want = [1] of { bool };   /* messages */

#ifdef FORCED
bool hangs;                           /* no hold of the crowd ends by itself */
chan look = [1] of { bool };          /* messages */
#define ENDS (has_tenure && !hangs)
#else
#define ENDS has_tenure
#endif

bool single_waits, single_has_said;
#ifdef DEAF
bool single_lives = false; /* as far as the server knows: it has asked a moment ago */
#else
#define single_lives true /* it listens */
#endif
bool redisson_waits, redisson_is_awake;
byte comes = REDISSON;

bool crowd_stands_back, single_stands_back;
bool yields = true;
bool is_granted_alone; /* nobody else waited when it was granted; the grant says so */

hidden mtype next;
hidden byte others, is_new;

/* ---- the server ---- */

inline enqueue(who)
{
#ifndef NO_QUEUE
    if
    :: queue??[who] -> skip
    :: else -> queue!who
    fi
#else
    skip
#endif
}

inline forget_queue()
{
    do
    :: nempty(queue) -> queue?_
    :: empty(queue) -> break
    od
}

/* Redisson's waiters hear it; ours ask anyway. */
inline publish_release()
{
    if
    :: redisson_waits -> redisson_is_awake = true
    :: redisson_waits && losses > 0 -> losses--
    :: !redisson_waits -> skip
    fi
}

inline publish_yield()
{
    yields = false;
#ifndef NO_STANDING_BACK
    if
    :: crowd_stands_back = true; single_stands_back = true
    :: losses > 0 -> /* but whoever releases knows */
        losses--;
        crowd_stands_back = (holder == crowd);
        single_stands_back = (holder == single)
    fi
#endif
}

inline pick_next(who)
{
    next = nobody;
    do
    :: next == nobody && nempty(queue) ->
        queue?next;
        if
        :: next == who -> next = nobody
        :: next == single && !single_lives -> next = nobody /* Lua: lock_release.lua */
        :: else -> skip
        fi
    :: next != nobody || empty(queue) -> break
    od
}

inline free_key()
{
    holder = nobody;
    publish_release()
}

inline script_release(who) /* Lua: lock_release.lua */
{
#ifdef NO_YIELD
    others = false;
#else
    others = redisson_waits && yields;
#endif
    if
    :: others -> publish_yield(); next = nobody /* C: hli_contention_yield */
    :: !others -> pick_next(who)
    fi;
    if
    :: next == nobody -> free_key()
    :: next != nobody -> holder = next; is_granted_alone = (len(queue) == 0 && !redisson_waits)
    fi
}

/* ---- the crowd ---- */

#define STANDS_BACK(who) (who && redisson_is_awake)

/* An acquire that found no key has word that nobody waits; a granted one has it if the grant says
 * so; an acquire that found the lock granted to itself has none. */
inline crowd_asks() /* C: hli_ask_plan */
{
    if
    :: holder == nobody -> /* C: ask_is_ours */
        holder = crowd; has_tenure = true; is_wanted = false; age = 0;
        forget_queue()
    :: holder == crowd -> /* C: ask_is_ours */
        has_tenure = true; is_wanted = false; age = WORD
    :: holder == crowd -> /* C: grant_begin_hold */
        has_tenure = true; is_wanted = !is_granted_alone; age = (is_granted_alone -> 0 : WORD)
    :: else -> enqueue(crowd) /* C: hli_busy_answered */
    fi
}

/* Lua: lock_keep.lua */
inline ask_for_word() /* C: keep_refresh */
{
    if
    :: age > 0 && !is_wanted && !asks_word ->
        asks_word = true;
        word!(len(queue) > 0 || redisson_waits)
    :: else -> skip
    fi
}

/* Its answer will be the business of a tenure that is over. */
inline forget_word()
{
    asks_word = false;
    if
    :: nempty(word) -> word?_
    :: empty(word) -> skip
    fi
}

#ifdef NO_WORD
#define MAY_KEEP (!is_wanted)
#else
#define MAY_KEEP (!is_wanted && age < WORD)
#endif

/* The next thread, or nobody for a moment and then the next thread. */
inline crowd_ends_hold()
{
    if
    :: MAY_KEEP -> /* C: hli_keep_pass, hli_keep_retain, hli_keep_plan */
        age = (age < WORD -> age + 1 : age);
#ifndef NO_WORD
        ask_for_word()
#endif
    :: else -> /* C: release_hold */
        has_tenure = false; is_wanted = false; age = WORD;
        forget_word();
        script_release(crowd)
    fi
}

active proctype threads_of_crowd()
{
    do
    :: atomic { !has_tenure && !STANDS_BACK(crowd_stands_back) ->
        crowd_stands_back = false; crowd_asks() }
    :: atomic { ENDS -> crowd_ends_hold() }
    od
}

active proctype answers_to_crowd()
{
    do
    :: atomic { nempty(word) -> /* C: hli_keep_answered */
        word?others;
        asks_word = false;
        if
        :: others -> is_wanted = true /* C: hli_keep_answered */
        :: !others -> age = 0         /* C: hli_keep_answered */
        fi
    }
    od
}

#ifdef FORCED
/* ---- its hold is taken away ---- */

active proctype operator()
{
    atomic { has_tenure && holder == crowd -> hangs = true };
    atomic { /* Lua: lock_force_release.lua */
        free_key();
        if
        :: look!true /* Lua: force.lua */
        :: losses > 0 -> losses--
        fi
    }
}

inline look_at_hold() /* C: renewal_apply */
{
    if
    :: has_tenure && holder != crowd -> /* C: hli_loss_declare */
        has_tenure = false; is_wanted = false; age = WORD; hangs = false;
        forget_word()
    :: else -> skip
    fi
}

active proctype looks_of_crowd()
{
    do
    :: atomic { nempty(look) -> look?_; look_at_hold() } /* C: hli_hold_doubt */
#ifndef NO_LOOK
    :: atomic { has_tenure -> look_at_hold() } /* C: hli_hold_look_by */
#endif
    od
}
#endif

active proctype messages_to_crowd()
{
    do
    :: atomic { nempty(want) -> want?_; is_wanted = has_tenure } /* C: grant_is_wanted */
    od
}

/* ---- our other process ---- */

inline say_want()
{
    if
    :: holder == crowd && nfull(want) -> want!true
    :: holder == crowd && losses > 0 -> losses--
    :: holder != crowd || full(want) -> skip
    fi;
    single_has_said = true
}

/* A new waiter behind others sends no want: one is known already. Lua: lock_acquire.lua */
inline single_is_busy() /* C: hli_busy_answered */
{
    is_new = !(queue??[single]);
    enqueue(single);
#if defined(DEAF) && !defined(SKIPS_DEAF)
    single_lives = true; /* Lua: queue.lua */
#endif
    if
    :: is_new && len(queue) > 1 -> skip
#ifdef WANT_ONCE
    :: !(is_new && len(queue) > 1) && !single_has_said -> say_want()
    :: !(is_new && len(queue) > 1) && single_has_said -> skip
#else
    :: !(is_new && len(queue) > 1) -> say_want(); single_has_said = false
#endif
    fi
}

inline single_asks() /* C: hli_ask_plan, hli_wake_on_timer */
{
    if
    :: holder == nobody -> holder = single; single_waits = false; forget_queue()
    :: holder == single -> single_waits = false /* C: grant_take */
    :: else -> single_is_busy()
    fi
}

#ifndef QUIET
active proctype other_of_ours()
{
    do
    :: atomic { !single_waits && holder != single -> single_waits = true; single_has_said = false }
    :: atomic { single_waits && !STANDS_BACK(single_stands_back) ->
        single_stands_back = false; single_asks() }
    :: atomic { !single_waits && holder == single -> script_release(single) }
    od
}
#endif

/* ---- a client of Redisson's ---- */

active proctype client_of_redisson()
{
    do
    :: atomic { !redisson_waits && holder != redisson && comes > 0 ->
        comes = (comes == FOR_EVER -> FOR_EVER : comes - 1);
        redisson_waits = true; redisson_is_awake = true
    }
    :: atomic { redisson_waits && redisson_is_awake && holder == nobody ->
        holder = redisson; redisson_waits = false; redisson_is_awake = false
    }
    :: atomic { redisson_waits && redisson_is_awake && holder != nobody ->
        redisson_is_awake = false }
    :: atomic { holder == redisson -> free_key() }
    od
}

active proctype time_goes_on()
{
    do
    :: atomic { !yields -> yields = true } /* C: hli_contention_may_yield */
    od
}

/* ---- what must hold ---- */

ltl single_is_served { [] (single_waits -> <> !single_waits) }
ltl redisson_is_served { [] (redisson_waits -> <> !redisson_waits) }
ltl crowd_is_served { [] (!has_tenure -> <> has_tenure) }
#ifdef FORCED
ltl crowd_learns { [] ((has_tenure && holder != crowd) -> <> !has_tenure) }
#endif
ltl crowd_lets_go { [] ((single_waits && has_tenure) -> <> !has_tenure) }
