/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The resolver: how many look-ups there are for how many who ask, and what becomes of an answer.
 * The look-ups last until the test ends them. */

#include "redis/resolver.h"

#include "base/gate.h"

#include "support/census.h"
#include "support/test.h"

#include <resolv.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 60, SOME = 20 };

static atomic_int begun; /* patient look-ups */
static atomic_int most, now, told, longest;
static atomic_int hasty;  /* look-ups */
static atomic_int untold; /* they were told that there is no address */
static atomic_bool is_over;
static atomic_bool hasty_ones_fail; /* at once */
static struct hli_loop *loop;
static struct hli_resolver *resolver;
static struct hli_name_ask ask[MANY];

/* The linker puts it in the place of getaddrinfo() (CMakeLists.txt). */
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses)
{
    int count = atomic_fetch_add(&now, 1) + 1, seen = atomic_load(&most);

    atomic_store(&longest, (int)strlen(host));
    while (count > seen && !atomic_compare_exchange_weak(&most, &seen, count))
        ;
    bool is_hasty = _res.retrans == 1, fails = is_hasty && atomic_load(&hasty_ones_fail);
    atomic_fetch_add(is_hasty ? &hasty : &begun, 1);
    while (!fails && !atomic_load(&is_over))
        deadline_nap();
    atomic_fetch_sub(&now, 1);
    return fails ? EAI_NONAME : __real_getaddrinfo("127.0.0.1", service, hints, ret_addresses);
}

static void count_told(struct hli_name_ask *asked, const struct addrinfo *addresses,
                       const char *why)
{
    (void)asked, (void)why;
    atomic_fetch_add(addresses ? &told : &untold, 1);
}

/* Runs the function on the loop's thread. */
struct step {
    struct hli_task task;
    void (*run)(void);
    struct hli_gate gate;
};

static void step_run(void *arg)
{
    struct step *step = arg;
    step->run();
    hli_gate_open(&step->gate);
}

static void on_loop(void (*run)(void))
{
    struct step step = {.task = {.run = step_run, .arg = &step}, .run = run};
    check(hli_loop_post(loop, &step.task));
    hli_gate_wait(&step.gate, HLI_NEVER);
}

static void resolver_up(void)
{
    check_int(hli_loop_start(&loop, NULL, NULL), 0);
    resolver = hli_resolver_new(loop, 100000000);
    check(resolver != NULL);
    for (int i = 0; i < MANY; i++)
        ask[i].done = count_told;
}

static void stop_all(void)
{
    for (int i = 0; i < MANY; i++)
        hli_name_ask_drop(&ask[i]);
    hli_resolver_stop(resolver);
}

static void resolver_down(void)
{
    on_loop(stop_all);
    hli_loop_stop(loop);
    hli_resolver_free(resolver);
    hli_loop_free(loop);
    atomic_store(&is_over, true);
    check(census_waits_for_no_thread());
}

#define ResolverLaw(name) Test(resolver, name, .init = resolver_up, .fini = resolver_down)

static bool has_come_to(void *count)
{
    return atomic_load(&told) >= *(int *)count;
}

static bool has_begun(void *count)
{
    return atomic_load(&begun) >= *(int *)count;
}

static void await(bool (*has)(void *count), int count)
{
    check(wait_until(has, &count, 30000));
}

static void nothing(void)
{
}

static void ask_for_names(int count)
{
    for (int i = 0; i < count; i++) {
        char host[32];
        snprintf(host, sizeof host, "host%d.test", i);
        hli_resolver_ask(resolver, &ask[i], host);
    }
}

static void ask_many(void)
{
    ask_for_names(MANY);
}

static void ask_some(void)
{
    ask_for_names(SOME);
}

ResolverLaw(looks_up_all_names_with_a_bounded_number_of_threads)
{
    on_loop(ask_many);
    await(has_begun, HLI_RESOLVER_THREADS);
    atomic_store(&is_over, true);
    await(has_come_to, MANY);
    check_int(atomic_load(&begun), MANY);
    check(atomic_load(&most) <= HLI_RESOLVER_THREADS);
}

static bool has_reached_bound(void *arg)
{
    (void)arg;
    return atomic_load(&most) >= HLI_RESOLVER_THREADS;
}

/* Three for each name would be more. */
ResolverLaw(asks_in_other_ways_within_the_same_bound)
{
    on_loop(ask_some);
    check(wait_until(has_reached_bound, NULL, 30000));
    on_loop(nothing);
    atomic_store(&is_over, true);
    await(has_come_to, SOME);
    check_int(atomic_load(&begun), SOME);
    check_int(atomic_load(&most), HLI_RESOLVER_THREADS);
}

static void ask_one_many_times(void)
{
    for (int i = 0; i < MANY; i++)
        hli_resolver_ask(resolver, &ask[i], "host.test");
}

ResolverLaw(looks_a_name_up_once_for_all_who_wait)
{
    on_loop(ask_one_many_times);
    atomic_store(&is_over, true);
    await(has_come_to, MANY);
    check_int(atomic_load(&begun), 1);
}

static void ask_once(void)
{
    hli_resolver_ask(resolver, &ask[0], "host.test");
}

static void ask_again(void)
{
    hli_resolver_ask(resolver, &ask[1], "host.test");
}

/* An address may have changed: so what was of use once is not used again. */
ResolverLaw(looks_a_name_up_again_for_the_next_who_asks)
{
    atomic_store(&is_over, true);
    on_loop(ask_once);
    await(has_come_to, 1);
    on_loop(ask_again);
    await(has_come_to, 2);
    check_int(atomic_load(&begun), 2);
}

static bool have_hasty_ones_ended(void *arg)
{
    (void)arg;
    return atomic_load(&hasty) == 2 && census_threads_named("hirelock-name") == 1;
}

/* A turn of the loop after their threads have ended, their answers have been seen. */
ResolverLaw(takes_no_word_of_a_hasty_one_that_there_is_no_address)
{
    atomic_store(&hasty_ones_fail, true);
    on_loop(ask_once);
    check(wait_until(have_hasty_ones_ended, NULL, 30000));
    on_loop(nothing);
    on_loop(nothing);
    check_int(atomic_load(&untold), 0);
    atomic_store(&is_over, true);
    await(has_come_to, 1);
    check_int(atomic_load(&untold), 0);
}

static void ask_long(void)
{
    static char host[301];
    memset(host, 'a', sizeof host - 1);
    hli_resolver_ask(resolver, &ask[0], host);
}

/* That no host has it is for the system to say: a part of it may be another host's name. */
ResolverLaw(looks_a_name_up_whole)
{
    atomic_store(&is_over, true);
    on_loop(ask_long);
    await(has_come_to, 1);
    check_int(atomic_load(&longest), 300);
}

static void drop_first(void)
{
    hli_name_ask_drop(&ask[0]);
}

/* Its thread has ended, and a turn of the loop later its answer has been seen. */
ResolverLaw(keeps_an_answer_for_which_nobody_waits_for_one_who_asks)
{
    on_loop(ask_once);
    await(has_begun, 1);
    on_loop(drop_first);
    atomic_store(&is_over, true);
    while (census_threads_named("hirelock-name") > 0)
        deadline_nap();
    on_loop(nothing);
    on_loop(nothing);
    on_loop(ask_again);
    await(has_come_to, 1);
    check_int(atomic_load(&begun), 1);
    on_loop(ask_once);
    await(has_come_to, 2);
    check_int(atomic_load(&begun), 2);
}
