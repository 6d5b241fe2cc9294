/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Threads of one process that wait in a circle: the wait that closes it is refused, and no other.
 */

#include "lease/acquire/deadlock.h"
#include "lease/calls/wait.h"
#include "multi_kit.h"
#include "support/actor.h"
#include "support/kinds.h"

#include <pthread.h>

enum { STORM_THREADS = 6, STORM_ROUNDS = 60, CHAIN = 16 };

static hl_client *client;
static const hl_acquire_options forever = {.size = sizeof(hl_acquire_options),
                                           .wait_ms = HL_WAIT_FOREVER};

/* A thread that has no processor to go on with: it has what it waits for, or is about to look for
 * another owner's name. */
static struct {
    atomic_bool is_armed, is_stopped, may_go, is_looking;
    pthread_t thread;
} late;

static void stop_if_late(bool is_looking)
{
    if (!atomic_load(&late.is_armed) || !pthread_equal(late.thread, pthread_self()) ||
        atomic_load(&late.is_looking) != is_looking)
        return;
    atomic_store(&late.is_armed, false);
    atomic_store(&late.is_stopped, true);
    while (!atomic_load(&late.may_go))
        deadline_nap();
}

int __real_hli_wait_block(struct hli_wait *wait);
int __wrap_hli_wait_block(struct hli_wait *wait);
int __wrap_hli_wait_block(struct hli_wait *wait)
{
    int code = __real_hli_wait_block(wait);
    stop_if_late(false);
    return code;
}

struct hli_name *__real_hli_name_find(hl_client *of, const struct hli_name_key *key);
struct hli_name *__wrap_hli_name_find(hl_client *of, const struct hli_name_key *key);
struct hli_name *__wrap_hli_name_find(hl_client *of, const struct hli_name_key *key)
{
    const struct hl_owner *owner = hli_owner_of_thread_if_any();
    uint64_t number = key->owner_key.half[0];
    if (owner && number != 0 && number != owner->number)
        stop_if_late(true);
    return __real_hli_name_find(of, key);
}

static void be_late(void *arg)
{
    late.thread = pthread_self();
    atomic_store(&late.is_looking, arg);
    atomic_store(&late.is_armed, true);
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return atomic_load(&late.is_stopped);
}

static struct actor *holder_of(hl_lock *lock)
{
    struct actor *actor = actor_start();
    expect_ok(actor_acquire(actor, lock, &forever));
    return actor;
}

static void begins_to_wait(struct actor *actor, hl_lock *lock)
{
    int waiting = (int)stats_of(client).waiters_now;
    actor_begin_acquire(actor, lock, &forever);
    expect_waiters(client, waiting + 1);
}

/* It lets go, so the other gets what it waits for. */
static void expect_goes_on(struct actor *holder, hl_lock *held, struct actor *waiter)
{
    expect_ok(actor_release(holder, held, NULL));
    expect_ok(actor_end(waiter));
}

/* Threads in a circle: each holds a lock, and waits for what the next one holds. */
struct circle {
    int count;
    hl_lock *holds[4], *wants[4];
    struct actor *actors[4];
};

static int circle_await_refusal(struct circle *circle)
{
    struct deadline deadline = deadline_in(20000);
    for (;; deadline_nap()) {
        for (int i = 0; i < circle->count; i++)
            if (actor_is_done(circle->actors[i]))
                return i;
        check(!deadline_is_over(deadline));
    }
}

/* Which of them closes the circle is the threads' matter; all the others go on waiting, and get
 * what they wait for, one after the other. Returns the refused one's error. */
static const char *expect_circle_is_refused_once(struct circle *circle)
{
    int count = circle->count;
    for (int i = 0; i < count; i++)
        circle->actors[i] = holder_of(circle->holds[i]);
    for (int i = 0; i < count; i++)
        actor_begin_acquire(circle->actors[i], circle->wants[i], &forever);
    int refused = circle_await_refusal(circle);
    struct actor *last = circle->actors[refused];
    static char error[sizeof(((hl_error *)0)->text)];
    expect_outcome(actor_end(last), HL_EDEADLK);
    snprintf(error, sizeof error, "%s", actor_error(last));
    expect_waiters(client, count - 1);
    check(actor_holds(last, circle->holds[refused], NULL));
    for (int i = refused; i > refused - count + 1; i--) {
        int at = (i + count) % count, before = (i - 1 + count) % count;
        expect_goes_on(circle->actors[at], circle->holds[at], circle->actors[before]);
        expect_ok(actor_release(circle->actors[before], circle->wants[before], NULL));
    }
    int first = (refused + 1) % count;
    expect_ok(actor_release(circle->actors[first], circle->holds[first], NULL));
    return error;
}

/* The error of the thread that wants this name, when each wants the next name. */
static const char *circle_text(const char *const *names, int count, int wanted)
{
    static char text[400];
    int used = snprintf(text, sizeof text, "acquire '%s': ", names[wanted]);
    for (int i = 1; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s owner waits for '%s', ",
                         i == 1 ? "its" : "whose", names[(wanted + i) % count]);
    snprintf(text + used, sizeof text - (size_t)used, "which this owner holds");
    return text;
}

static void expect_circle_of_names(const char *const *names, int count)
{
    struct circle circle = {.count = count};
    int wanted = 0;
    for (int i = 0; i < count; i++)
        circle.holds[i] = circle.wants[(i - 1 + count) % count] = new_lock(client, names[i]);
    const char *error = expect_circle_is_refused_once(&circle);
    while (wanted < count - 1 && !strstr(error, circle_text(names, count, wanted)))
        wanted++;
    check_str(error, circle_text(names, count, wanted));
    expect_nothing_left();
}

Law(deadlock, is_refused_to_one_thread_of_a_circle_and_told_from_thread_to_thread)
{
    client = open_client(NULL);
    expect_circle_of_names((const char *[]){"area", "bay"}, 2);
    expect_circle_of_names((const char *[]){"area", "bay", "cask", "den"}, 4);
    expect_circle_of_names((const char *[]){"den", "area", "cask"}, 3);
}

/* A circle longer than an error's text. */
Law(deadlock, is_told_in_part_when_its_names_are_long)
{
    char names[4][300];
    struct circle circle = {.count = 4};
    client = open_client(NULL);
    for (int i = 0; i < 4; i++) {
        memset(names[i], 'a' + i, sizeof names[i] - 1);
        names[i][sizeof names[i] - 1] = '\0';
        circle.holds[i] = circle.wants[(i + 3) % 4] = new_lock(client, names[i]);
    }
    check_has(expect_circle_is_refused_once(&circle), "and so on, back to this owner");
}

/* Nobody waits for the last one of a chain, nor for a thread in front of a circle. */
Law(deadlock, is_not_seen_in_a_chain)
{
    client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay"),
            *c = new_lock(client, "cask");
    struct actor *one = holder_of(a), *two = holder_of(b), *three = holder_of(c);
    begins_to_wait(one, b);
    begins_to_wait(two, c);
    expect_outcome(actor_acquire(three, b, ACQUIRE(.wait_ms = HL_NO_WAIT)), HL_EBUSY);
    expect_goes_on(three, c, two);
    expect_ok(actor_release(two, c, NULL));
    expect_goes_on(two, b, one);
}

Law(deadlock, is_none_when_the_other_wait_has_ended)
{
    client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay");
    struct actor *one = holder_of(a), *other = holder_of(b);
    expect_outcome(actor_acquire(one, b, ACQUIRE(.wait_ms = 20)), HL_ETIMEDOUT);
    begins_to_wait(other, a);
    expect_goes_on(one, a, other);
}

/* A hold that is not its owner's any more keeps nobody waiting for that owner. */
Law(deadlock, is_none_through_a_hold_that_is_lost)
{
    client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay");
    struct actor *one = actor_start(), *other = holder_of(b);
    expect_ok(actor_acquire(one, a, ACQUIRE(.lease_ms = 300)));
    begins_to_wait(one, b);
    wait_stat(client, losses, 1);
    expect_ok(actor_acquire(other, a, &forever));
    expect_ok(actor_release(other, a, NULL));
    expect_goes_on(other, b, one);
}

/* So the wait for it ends, and a program may take a lock for a time, and let the time release it.
 */
static void expect_no_circle_through(const hl_acquire_options *options)
{
    client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay");
    struct actor *one = actor_start(), *other = holder_of(b);
    expect_ok(actor_acquire(one, a, options));
    begins_to_wait(one, b);
    expect_ok(actor_acquire(other, a, &forever));
    expect_ok(actor_release(other, a, NULL));
    expect_goes_on(other, b, one);
}

Law(deadlock, is_none_through_a_hold_that_ends_by_its_lease_time)
{
    expect_no_circle_through(ACQUIRE(.lease_ms = slow_ms(1000)));
}

Law(deadlock, is_none_through_a_hold_that_ends_by_max_hold)
{
    expect_no_circle_through(ACQUIRE(.max_hold_ms = slow_ms(1000)));
}

/* Its hold ended before it could go on, and another thread has the lock by now. */
Law(deadlock, is_seen_by_a_call_that_waits_on_after_a_late_grant)
{
    client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay");
    struct actor *one = holder_of(a), *other = actor_start();
    struct circle circle = {.count = 2, .actors = {one, other}};
    expect_ok(hl_lock_acquire(b, ERR));
    actor_begin(one, be_late, NULL);
    actor_await(one);
    actor_begin_acquire(one, b, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .lease_ms = 300));
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(b, ERR));
    check(wait_until(is_stopped, NULL, 20000));
    expect_ok(actor_acquire(other, b, &forever));
    begins_to_wait(other, a);
    atomic_store(&late.may_go, true);
    if (circle_await_refusal(&circle) == 0) {
        expect_outcome(actor_end(one), HL_EDEADLK);
        expect_goes_on(one, a, other);
        expect_ok(actor_release(other, a, NULL));
        expect_ok(actor_release(other, b, NULL));
    } else { /* it stood in the line, and was not announced yet */
        expect_outcome(actor_end(other), HL_EDEADLK);
        expect_goes_on(other, b, one);
        expect_ok(actor_release(one, b, NULL));
        expect_ok(actor_release(one, a, NULL));
    }
    expect_nothing_left();
}

static void expect_circle_of(hl_lock *a, hl_lock *b)
{
    struct circle circle = {.count = 2, .holds = {a, b}, .wants = {b, a}};
    check_has(expect_circle_is_refused_once(&circle), "which this owner holds");
}

Law(deadlock, is_seen_through_locks_of_each_kind)
{
    client = open_client(NULL);
    hl_lock *fair = new_kind(client, "area", HL_LOCK_FAIR),
            *fenced = new_kind(client, "bay", HL_LOCK_FENCED),
            *spin = new_kind(client, "cask", HL_LOCK_SPIN), *read = NULL, *write = NULL;
    expect_ok(rw_lock_new(client, "den", NULL, &read, &write, ERR));
    keep_lock(read);
    keep_lock(write);
    expect_circle_of(fair, fenced);
    expect_circle_of(spin, write);
    expect_circle_of(write, fair);
    struct circle circle = {
        .count = 3, .holds = {read, fenced, fair}, .wants = {fenced, fair, write}};
    expect_circle_is_refused_once(&circle);
}

Law(deadlock, is_none_among_readers)
{
    client = open_client(NULL);
    hl_lock *read = NULL, *write = NULL, *stock = new_lock(client, "area");
    expect_ok(rw_lock_new(client, "den", NULL, &read, &write, ERR));
    keep_lock(read);
    keep_lock(write);
    struct actor *one = holder_of(read), *other = holder_of(stock);
    begins_to_wait(one, stock);
    expect_ok(actor_acquire(other, read, &forever));
    expect_goes_on(other, stock, one);
}

/* A multi-lock waits for one member and holds those before it. */
Law(deadlock, is_seen_by_a_multi_lock_and_through_one)
{
    client = open_client(NULL);
    hl_lock *b = new_lock(client, "bay"), *c = new_lock(client, "cask"),
            *all = new_multi(client, "area bay cask");
    struct circle circle = {.count = 2, .actors = {holder_of(c), actor_start()}};
    actor_begin_acquire(circle.actors[1], all, &forever);
    expect_all_held_by(client, "area bay");
    actor_begin_acquire(circle.actors[0], b, &forever);
    if (circle_await_refusal(&circle) == 0) {
        expect_outcome(actor_end(circle.actors[0]), HL_EDEADLK);
        expect_goes_on(circle.actors[0], c, circle.actors[1]);
        expect_ok(actor_release(circle.actors[1], all, NULL));
    } else {
        expect_ok(actor_end(circle.actors[0]));
        expect_outcome(actor_end(circle.actors[1]), HL_EDEADLK);
        expect_ok(actor_release(circle.actors[0], b, NULL));
        expect_ok(actor_release(circle.actors[0], c, NULL));
    }
    expect_nothing_left();
}

/* Each of them holds a lock and waits for the next one's. The calls come from the chain's end to
 * its head, so the k-th search walks along k calls. */
static unsigned asks_of_chain(hl_lock *const *holds, hl_lock *const *wants)
{
    struct actor *actors[CHAIN];
    unsigned before = atomic_load(&hli_deadlock_asks);
    for (int i = 0; i < CHAIN; i++)
        actors[i] = holder_of(holds[i]);
    for (int i = CHAIN - 2; i >= 0; i--)
        begins_to_wait(actors[i], wants[i + 1]);
    for (int i = CHAIN - 1; i > 0; i--) {
        expect_goes_on(actors[i], holds[i], actors[i - 1]);
        expect_ok(actor_release(actors[i - 1], wants[i], NULL));
    }
    expect_ok(actor_release(actors[0], holds[0], NULL));
    expect_nothing_left();
    return atomic_load(&hli_deadlock_asks) - before;
}

/* A walk along k calls asks k names; or, of a write lock that is read, twice as many. */
static void expect_walks(hl_lock *const *holds, hl_lock *const *wants, unsigned asks_a_call)
{
    unsigned asks = asks_of_chain(holds, wants);
    check(asks > 0);
    check(asks <= asks_a_call * CHAIN * (CHAIN - 1) / 2);
}

Law(deadlock, is_looked_for_in_as_many_steps_as_calls_stand_in_the_chain)
{
    hl_lock *fair[CHAIN], *read[CHAIN], *write[CHAIN];
    client = open_client(NULL);
    for (int i = 0; i < CHAIN; i++) {
        char name[16];
        snprintf(name, sizeof name, "fair%d", i);
        fair[i] = new_kind(client, name, HL_LOCK_FAIR);
        snprintf(name, sizeof name, "rw%d", i);
        expect_ok(rw_lock_new(client, name, NULL, &read[i], &write[i], ERR));
        keep_lock(read[i]);
        keep_lock(write[i]);
    }
    expect_walks(fair, fair, 1);
    expect_walks(write, write, 1);
    expect_walks(read, write, 2);
}

/* One of two readers closes the circle, be it the first or the second of them. */
Law(deadlock, is_seen_through_each_of_several_readers)
{
    client = open_client(NULL);
    hl_lock *stock = new_lock(client, "area"), *bay = new_lock(client, "bay"), *read = NULL,
            *write = NULL;
    expect_ok(rw_lock_new(client, "den", NULL, &read, &write, ERR));
    keep_lock(read);
    keep_lock(write);
    struct circle circle = {.count = 2, .holds = {read, stock}, .wants = {stock, write}};
    struct actor *other = holder_of(bay);
    for (int is_later = 0; is_later < 2; is_later++) {
        struct actor *first = holder_of(read), *second = holder_of(read);
        struct actor *closes = is_later ? second : first, *idle = is_later ? first : second;
        begins_to_wait(idle, bay);
        circle.actors[0] = closes;
        circle.actors[1] = holder_of(stock);
        actor_begin_acquire(circle.actors[0], stock, &forever);
        actor_begin_acquire(circle.actors[1], write, &forever);
        int refused = circle_await_refusal(&circle);
        expect_outcome(actor_end(circle.actors[refused]), HL_EDEADLK);
        expect_goes_on(other, bay, idle);
        expect_ok(actor_release(idle, bay, NULL));
        expect_ok(actor_release(idle, read, NULL));
        expect_goes_on(circle.actors[refused], circle.holds[refused], circle.actors[1 - refused]);
        expect_ok(actor_release(circle.actors[1 - refused], circle.wants[1 - refused], NULL));
        expect_ok(actor_release(circle.actors[1 - refused], circle.holds[1 - refused], NULL));
        expect_ok(actor_acquire(other, bay, &forever));
    }
    expect_ok(actor_release(other, bay, NULL));
    expect_nothing_left();
}

/* The search takes the reader whose hold began last for the only one. It has ended; and it begins
 * anew before the search looks. */
Law(deadlock, is_seen_through_a_reader_though_another_one_reads_again_meanwhile)
{
    client = open_client(NULL);
    hl_lock *stock = new_lock(client, "area"), *read = NULL, *write = NULL;
    expect_ok(rw_lock_new(client, "den", NULL, &read, &write, ERR));
    keep_lock(read);
    keep_lock(write);
    struct actor *one = holder_of(read), *again = holder_of(read), *other = holder_of(stock);
    struct circle circle = {.count = 1, .actors = {other}};
    expect_ok(actor_release(again, read, NULL));
    begins_to_wait(one, stock);
    actor_begin(other, be_late, &late);
    actor_await(other);
    actor_begin_acquire(other, write, &forever);
    check(wait_until(is_stopped, NULL, 20000));
    expect_ok(actor_acquire(again, read, &forever));
    atomic_store(&late.may_go, true);
    circle_await_refusal(&circle);
    expect_outcome(actor_end(other), HL_EDEADLK);
    expect_ok(actor_release(again, read, NULL));
    expect_goes_on(other, stock, one);
    expect_ok(actor_release(one, stock, NULL));
    expect_ok(actor_release(one, read, NULL));
    expect_nothing_left();
}

/* Nor does a hold that ends by itself make the search ask every owner. */
Law(deadlock, is_looked_for_in_one_step_when_all_wait_for_one_hold)
{
    struct actor *waiting[CHAIN];
    client = open_client(NULL);
    hl_lock *fair = new_kind(client, "stock", HL_LOCK_FAIR), *own[CHAIN];
    expect_ok(hl_lock_acquire_with(fair, ACQUIRE(.lease_ms = 600000), ERR));
    unsigned before = atomic_load(&hli_deadlock_asks);
    for (int i = 0; i < CHAIN; i++) {
        char name[16];
        snprintf(name, sizeof name, "own%d", i);
        own[i] = new_lock(client, name);
        waiting[i] = holder_of(own[i]);
        begins_to_wait(waiting[i], fair);
    }
    expect_ok(hl_lock_release(fair, ERR));
    for (int i = 0; i < CHAIN; i++) {
        expect_ok(actor_end(waiting[i]));
        expect_ok(actor_release(waiting[i], fair, NULL));
        expect_ok(actor_release(waiting[i], own[i], NULL));
    }
    unsigned asks = atomic_load(&hli_deadlock_asks) - before;
    check(asks > 0);
    check(asks < CHAIN);
    expect_nothing_left();
}

/* Another thread may release for such an owner. */
Law(deadlock, is_none_of_owners_that_are_no_threads)
{
    client = open_client(NULL);
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay");
    hl_owner *owner = new_owner(client);
    struct actor *one = holder_of(a), *other = actor_start();
    expect_ok(hl_lock_acquire_with(b, ACQUIRE(.owner = owner), ERR));
    begins_to_wait(one, b);
    actor_begin_acquire(other, a, ACQUIRE(.owner = owner, .wait_ms = HL_WAIT_FOREVER));
    expect_waiters(client, 2);
    expect_ok(hl_lock_release_as(b, owner, ERR));
    expect_ok(actor_end(one));
    expect_ok(actor_release(one, a, NULL));
    expect_ok(actor_end(other));
}

Law(deadlock, is_left_alone_with_the_option)
{
    client = open_client(CLIENT(.flags = HL_CLIENT_NO_DEADLOCK_CHECK));
    hl_lock *a = new_lock(client, "area"), *b = new_lock(client, "bay");
    struct actor *one = holder_of(a), *other = holder_of(b);
    begins_to_wait(one, b);
    expect_outcome(actor_acquire(other, a, ACQUIRE(.wait_ms = 50)), HL_ETIMEDOUT);
    check(!actor_is_done(one));
    expect_goes_on(other, b, one);
}

/* Each thread takes two locks, and lets both go. */
static hl_lock *storm_locks[4];
static bool storm_is_ordered;
static atomic_uint storm_refusals, storm_successes;

static void storm_take_two(unsigned seed)
{
    unsigned first = seed % 4, second = (first + 1 + seed / 4 % 3) % 4;
    if (storm_is_ordered && first > second) {
        unsigned swap = first;
        first = second;
        second = swap;
    }
    expect_ok(hl_lock_acquire(storm_locks[first], ERR));
    int code = hl_lock_acquire(storm_locks[second], ERR);
    if (code == HL_EDEADLK) {
        atomic_fetch_add(&storm_refusals, 1);
    } else {
        expect_ok(code);
        atomic_fetch_add(&storm_successes, 1);
        expect_ok(hl_lock_release(storm_locks[second], ERR));
    }
    expect_ok(hl_lock_release(storm_locks[first], ERR));
}

static void storm_job(void *arg)
{
    unsigned seed = 2654435761u * (unsigned)(size_t)arg;
    for (int round = 0; round < STORM_ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        storm_take_two(seed >> 8);
    }
}

static void storm(bool is_ordered)
{
    struct actor *actors[STORM_THREADS];
    client = open_client(NULL);
    storm_is_ordered = is_ordered;
    for (int i = 0; i < 4; i++)
        storm_locks[i] = new_lock(client, (const char *[]){"area", "bay", "cask", "den"}[i]);
    for (int i = 0; i < STORM_THREADS; i++)
        actor_begin(actors[i] = actor_start(), storm_job, (void *)(size_t)(i + 1));
    for (int i = 0; i < STORM_THREADS; i++)
        actor_await(actors[i]);
    check_int(storm_refusals + storm_successes, STORM_THREADS * STORM_ROUNDS);
    expect_nothing_left();
}

Law(deadlock, ends_none_of_many_threads_that_take_locks_in_any_order)
{
    storm(false);
    check(storm_refusals > 0);
    check(storm_successes > 0);
}

Law(deadlock, is_never_seen_where_all_take_locks_in_one_order)
{
    storm(true);
    check_int(storm_refusals, 0);
}
