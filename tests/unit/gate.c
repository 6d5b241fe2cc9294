/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The gate, threads of the library, and waits by our clock. */

#include "base/gate.h"
#include "base/thread.h"
#include "base/wakefd.h"

#include "support/test.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void *open_gate(void *gate)
{
    hli_gate_open(gate);
    return NULL;
}

static void *poke_gate(void *gate)
{
    hli_gate_nudge(gate);
    return NULL;
}

Test(gate, stays_open)
{
    struct hli_gate gate = {0};
    check(!hli_gate_is_open(&gate));
    hli_gate_open(&gate);
    check(hli_gate_is_open(&gate));
    check_int(hli_gate_wait(&gate, HLI_NEVER), HLI_GATE_OPEN);
    check_int(hli_gate_wait(&gate, 0), HLI_GATE_OPEN);
}

Test(gate, is_shut_when_the_deadline_is_over)
{
    struct hli_gate gate = {0};
    hli_ns before = hli_now();
    check_int(hli_gate_wait(&gate, 0), HLI_GATE_SHUT);
    check_int(hli_gate_wait(&gate, before + HLI_MS(10)), HLI_GATE_SHUT);
    check(hli_now() >= before + HLI_MS(10));
}

Test(gate, uses_up_a_nudge)
{
    struct hli_gate gate = {0};
    hli_gate_nudge(&gate);
    hli_gate_nudge(&gate);
    check(!hli_gate_is_open(&gate));
    check_int(hli_gate_wait(&gate, HLI_NEVER), HLI_GATE_NUDGED);
    check_int(hli_gate_wait(&gate, 0), HLI_GATE_SHUT);
}

/* An opener may have read the wakefd of the first attach when it opens the gate: it must notice, or
 * it would wake nobody. */
Test(gate, has_another_state_at_each_attach)
{
    struct hli_gate gate = {0};
    struct hli_wakefd first, second;
    hli_wakefd_init(&first);
    hli_wakefd_init(&second);
    check(hli_gate_attach(&gate, &first));
    int before = atomic_load(&gate.state);
    hli_gate_detach(&gate);
    check(hli_gate_attach(&gate, &second));
    check(atomic_load(&gate.state) != before);
    check(hli_gate_is_shut(&gate));
    hli_gate_detach(&gate);
    check_int(atomic_load(&gate.state), HLI_GATE_SHUT);
}

Test(gate, is_not_shut_again_by_a_nudge)
{
    struct hli_gate gate = {0};
    hli_gate_open(&gate);
    hli_gate_nudge(&gate);
    check_int(hli_gate_wait(&gate, HLI_NEVER), HLI_GATE_OPEN);
}

Test(gate, wakes_a_waiter_every_time)
{
    for (int i = 0; i < 500; i++) {
        struct hli_gate opened = {0}, poked = {0};
        pthread_t thread[2];
        check_int(pthread_create(&thread[0], NULL, open_gate, &opened), 0);
        check_int(pthread_create(&thread[1], NULL, poke_gate, &poked), 0);
        check_int(hli_gate_wait(&opened, HLI_NEVER), HLI_GATE_OPEN);
        check_int(hli_gate_wait(&poked, HLI_NEVER), HLI_GATE_NUDGED);
        pthread_join(thread[0], NULL);
        pthread_join(thread[1], NULL);
    }
}

/* Waits as a thread does that sleeps in poll(2). */
static void wait_polling(struct hli_gate *gate, struct hli_wakefd *wakefd)
{
    struct pollfd polled = {.fd = wakefd->fd, .events = POLLIN};
    if (hli_gate_attach(gate, wakefd))
        check_int(poll(&polled, 1, (int)slow_ms(10000)), 1);
    hli_gate_detach(gate);
    if (polled.revents)
        hli_wakefd_clear(wakefd);
    check(!hli_gate_is_shut(gate));
}

Test(gate, wakes_a_waiter_that_polls_every_time)
{
    struct hli_wakefd wakefd;
    hli_wakefd_init(&wakefd);
    check_int(hli_wakefd_open(&wakefd), 0);
    for (int i = 0; i < 500; i++) {
        struct hli_gate opened = {0}, poked = {0};
        pthread_t thread;
        check_int(pthread_create(&thread, NULL, open_gate, &opened), 0);
        wait_polling(&opened, &wakefd);
        pthread_join(thread, NULL); /* it may have buzzed too late for this one */
        hli_wakefd_clear(&wakefd);
        check_int(pthread_create(&thread, NULL, poke_gate, &poked), 0);
        wait_polling(&poked, &wakefd);
        pthread_join(thread, NULL);
        hli_wakefd_clear(&wakefd);
        check_int(hli_gate_wait(&poked, HLI_NEVER), HLI_GATE_NUDGED);
    }
    hli_wakefd_close(&wakefd);
}

/* A waiter that takes one wakefd down and hangs another, as one does that reads for the process and
 * then for messages; and another thread that nudges it just then. */
struct duel {
    struct hli_gate gate;
    atomic_int turn; /* 1: nudge; 0: nudged; -1: the end */
};

static void *duel_poke(void *arg)
{
    struct duel *duel = arg;
    unsigned seed = 1;
    for (int turn; (turn = atomic_load(&duel->turn)) >= 0;) {
        if (turn == 0) {
            sched_yield();
            continue;
        }
        for (volatile int i = rand_r(&seed) % 400; i > 0; i--)
            ;
        hli_gate_nudge(&duel->gate);
        atomic_store(&duel->turn, 0);
    }
    return NULL;
}

Test(gate, buzzes_by_what_is_polled_now_and_not_by_what_was_taken_down)
{
    static struct duel duel;
    struct hli_wakefd first, second;
    pthread_t thread;
    unsigned seed = 7;
    hli_wakefd_init(&first);
    hli_wakefd_init(&second);
    check_int(hli_wakefd_open(&first), 0);
    check_int(hli_wakefd_open(&second), 0);
    check_int(pthread_create(&thread, NULL, duel_poke, &duel), 0);
    for (int i = 0; i < 30000; i++) {
        atomic_store(&duel.gate.state, HLI_GATE_SHUT);
        hli_wakefd_clear(&first);
        hli_wakefd_clear(&second);
        atomic_store(&duel.turn, 1);
        bool is_hung = hli_gate_attach(&duel.gate, &first);
        for (volatile int k = rand_r(&seed) % 200; k > 0; k--)
            ;
        hli_gate_detach(&duel.gate);
        is_hung = is_hung && hli_gate_attach(&duel.gate, &second);
        while (atomic_load(&duel.turn) != 0)
            sched_yield();
        struct pollfd polled = {.fd = second.fd, .events = POLLIN};
        check_msg(!is_hung || hli_gate_is_shut(&duel.gate) || poll(&polled, 1, 0) == 1,
                  "round %d: it polls on", i);
    }
    atomic_store(&duel.turn, -1);
    pthread_join(thread, NULL);
    hli_wakefd_close(&first);
    hli_wakefd_close(&second);
}

Test(gate, may_be_polled_after_a_sleep_that_was_over_by_itself)
{
    struct hli_wakefd wakefd;
    struct hli_gate gate = {0};
    hli_wakefd_init(&wakefd);
    check_int(hli_wakefd_open(&wakefd), 0);
    check_int(hli_gate_wait(&gate, hli_now() + HLI_MS(1)), HLI_GATE_SHUT);
    check(hli_gate_attach(&gate, &wakefd));
    hli_gate_nudge(&gate);
    struct pollfd polled = {.fd = wakefd.fd, .events = POLLIN};
    check_int(poll(&polled, 1, 0), 1);
    hli_wakefd_close(&wakefd);
}

Test(gate, buzzes_only_for_a_thread_that_polls)
{
    struct hli_wakefd wakefd;
    struct hli_gate gate = {0};
    hli_wakefd_init(&wakefd);
    check_int(hli_wakefd_open(&wakefd), 0);
    struct pollfd polled = {.fd = wakefd.fd, .events = POLLIN};
    check(hli_gate_attach(&gate, &wakefd));
    hli_gate_detach(&gate);
    hli_gate_nudge(&gate);
    check_int(poll(&polled, 1, 0), 0);
    check(!hli_gate_attach(&gate, &wakefd)); /* poked already */
    check_int(hli_gate_wait(&gate, 0), HLI_GATE_NUDGED);
    check(hli_gate_attach(&gate, &wakefd));
    hli_gate_open(&gate);
    check_int(poll(&polled, 1, 0), 1);
    hli_gate_detach(&gate);
    check(hli_gate_is_open(&gate));
    hli_wakefd_close(&wakefd);
}

static void *look_at_myself(void *name)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    check(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1));
    pthread_getname_np(pthread_self(), name, 16);
    return NULL;
}

Test(thread, has_a_name_and_no_signals)
{
    char name[16] = "";
    pthread_t thread;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    struct hli_gate named = {0};
    (void)named;
    check_int(hli_thread_start(&thread, "hirelock-test", look_at_myself, name), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    check_int(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

Test(thread, waits_for_a_condition_until_the_deadline)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    hli_ns deadline = hli_now() + HLI_MS(10);
    hli_cond_init(&cond);
    pthread_mutex_lock(&mutex);
    while (hli_now() < deadline)
        hli_cond_wait_until(&cond, &mutex, deadline);
    hli_cond_wait_until(&cond, &mutex, deadline - HLI_MS(5000));
    pthread_mutex_unlock(&mutex);
    check(hli_now() < deadline + HLI_MS(slow_ms(60000)));
    pthread_cond_destroy(&cond);
}

Test(thread, is_cancelable_again_after_a_public_call)
{
    int before, state = hli_cancelability_off();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    check_int(before, PTHREAD_CANCEL_DISABLE);
    hli_cancelability_restore(state);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    check_int(before, PTHREAD_CANCEL_ENABLE);
}
