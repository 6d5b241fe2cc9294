/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A tenure's states, and the arithmetic of validity. */

#include "lease/state/tenure.h"

#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>

enum { STATES = HLI_TENURE_ENDED + 1 };

static const bool allowed[STATES][STATES] = {
    [HLI_TENURE_NEW] = {[HLI_TENURE_ASK] = true, [HLI_TENURE_RELEASING] = true},
    [HLI_TENURE_ASK] = {[HLI_TENURE_WAIT] = true,
                        [HLI_TENURE_OWN] = true,
                        [HLI_TENURE_RELEASING] = true,
                        [HLI_TENURE_ENDED] = true},
    [HLI_TENURE_WAIT] =
        {[HLI_TENURE_OWN] = true, [HLI_TENURE_RELEASING] = true, [HLI_TENURE_ENDED] = true},
    [HLI_TENURE_OWN] =
        {[HLI_TENURE_IDLE] = true, [HLI_TENURE_LOST] = true, [HLI_TENURE_RELEASING] = true},
    [HLI_TENURE_IDLE] = {[HLI_TENURE_OWN] = true, [HLI_TENURE_RELEASING] = true},
    [HLI_TENURE_LOST] = {[HLI_TENURE_RELEASING] = true, [HLI_TENURE_ENDED] = true},
    [HLI_TENURE_RELEASING] = {[HLI_TENURE_ENDED] = true},
};

static struct hl_owner owner;

/* As it is in that state, and sound in the next. */
static struct hli_tenure tenure_in(enum hli_tenure_state from, enum hli_tenure_state to)
{
    struct hli_tenure tenure = {.state = from};
    if (to == HLI_TENURE_OWN || to == HLI_TENURE_IDLE || to == HLI_TENURE_LOST)
        tenure.hold = (struct hli_hold){.owner = &owner, .count = 1};
    tenure.valid_until = 1000;
    return tenure;
}

static int status_of_move(enum hli_tenure_state from, enum hli_tenure_state to)
{
    struct hli_tenure tenure = tenure_in(from, to);
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        hli_tenure_move(&tenure, to);
        _exit(0);
    }
    int status = -1;
    check_int(waitpid(pid, &status, 0), pid);
    return status;
}

Test(tenure, moves_only_as_drawn)
{
    for (int from = 0; from < STATES; from++)
        for (int to = 0; to < STATES; to++) {
            int status = status_of_move((enum hli_tenure_state)from, (enum hli_tenure_state)to);
            bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
            check_msg(aborted != allowed[from][to], "%s > %s: status %d",
                      hli_tenure_state_name((enum hli_tenure_state)from),
                      hli_tenure_state_name((enum hli_tenure_state)to), status);
        }
}

Test(tenure, holds_nothing_once_it_is_lost_releasing_or_ended)
{
    static const enum hli_tenure_state over[] = {HLI_TENURE_LOST, HLI_TENURE_RELEASING};
    for (int i = 0; i < 2; i++) {
        struct hli_tenure tenure = tenure_in(HLI_TENURE_OWN, over[i]);
        hli_tenure_move(&tenure, over[i]);
        check_int(tenure.valid_until, 0);
    }
}

static int traced_from = -1;

static void trace(const struct hli_tenure *tenure, enum hli_tenure_state from)
{
    check_int(tenure->state, HLI_TENURE_WAIT);
    traced_from = (int)from;
}

Test(tenure, tells_its_moves)
{
    struct hli_tenure tenure = tenure_in(HLI_TENURE_ASK, HLI_TENURE_WAIT);
    hli_tenure_trace = trace;
    hli_tenure_move(&tenure, HLI_TENURE_WAIT);
    check_int(traced_from, HLI_TENURE_ASK);
    check_str(hli_tenure_state_name(HLI_TENURE_RELEASING), "RELEASING");
}

Test(validity, ends_earlier_than_the_lease_by_one_percent_and_two_milliseconds)
{
    check_int(hli_lease_margin(100), HLI_MS(3));
    check_int(hli_lease_margin(30000), HLI_MS(302));
    check_int(hli_lease_validity(HLI_MS(5), 1000), HLI_MS(5 + 1000 - 12));
    check(hli_lease_validity(0, 10) > 0); /* the shortest lease that is taken */
}

Test(validity, counts_from_the_sending_and_never_moves_back)
{
    struct hli_tenure tenure = {.state = HLI_TENURE_OWN};
    hli_tenure_extend(&tenure, HLI_MS(1000), 1000, 0, 0);
    check_int(tenure.valid_until, HLI_MS(1988));
    hli_tenure_extend(&tenure, HLI_MS(900), 1000, 0, 0); /* an older request, answered later */
    check_int(tenure.valid_until, HLI_MS(1988));
    hli_tenure_extend(&tenure, HLI_MS(1500), 1000, 0, 0);
    check_int(tenure.valid_until, HLI_MS(2488));
}

Test(validity, of_a_hold_ends_with_its_own_lease_at_the_latest)
{
    struct hli_tenure tenure = {
        .state = HLI_TENURE_OWN, .valid_until = 100, .hold = {.ends = HLI_NEVER}};
    check_int(hli_hold_validity(&tenure), 100);
    check(hli_hold_is_valid(&tenure, 99) && !hli_hold_is_valid(&tenure, 100));
    tenure.hold.ends = 70;
    check_int(hli_hold_validity(&tenure), 70);
    check(hli_hold_is_valid(&tenure, 69) && !hli_hold_is_valid(&tenure, 70));
    tenure.state = HLI_TENURE_IDLE;
    check(!hli_hold_is_valid(&tenure, 69));
}

Test(validity, does_not_overflow_with_the_longest_lease)
{
    const int64_t longest_ms = INT64_C(100000000000);
    hli_ns now = INT64_C(1) << 61;
    hli_ns until = hli_lease_validity(now, longest_ms);
    check(until > now && until < HLI_NEVER);
    check(hli_lease_margin(longest_ms) == HLI_MS(longest_ms / 100 + 2));
}
