/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The test header itself: a check that fails is never lost, wherever it stands. */

#include "support/test.h"

#include <pthread.h>
#include <sys/wait.h>

/* Runs `body` in a forked child, whose complaint is not part of this program's output. */
static int child_status(void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        body();
        _exit(0);
    }
    int status = -1;
    check_int(waitpid(pid, &status, 0), pid);
    return status;
}

static bool child_failure_was_noted(void)
{
    return atomic_exchange(hl_test_process.child_failed, false);
}

static void fail_in_child(void)
{
    check_int(1, 2);
}

static void skip_in_child(void)
{
    skip("a child cannot");
}

static void *fail_in_thread(void *arg)
{
    check_str(arg, "else");
    return arg;
}

static void start_failing_thread(void)
{
    pthread_t thread;
    hl_test_process.pid = getpid(); /* as if the test ran here */
    pthread_create(&thread, NULL, fail_in_thread, "this");
    pthread_join(thread, NULL);
}

static bool is_third_look(void *looks)
{
    return ++*(int *)looks == 3;
}

static bool is_never(void *looks)
{
    ++*(int *)looks;
    return false;
}

Test(test_header, evaluates_what_it_checks_once)
{
    int count = 0;
    check(++count == 1);
    check_int(++count, 2);
    check_msg(++count == 3, "count is %d", count);
    check_int(count, 3);
}

Test(test_header, ends_a_child_whose_check_failed_and_notes_it)
{
    int status = child_status(fail_in_child);
    check(child_failure_was_noted());
    check_int(WEXITSTATUS(status), HL_TEST_FAILED);
}

Test(test_header, takes_a_skip_in_a_child_for_a_failure)
{
    int status = child_status(skip_in_child);
    check(child_failure_was_noted());
    check_int(WEXITSTATUS(status), HL_TEST_FAILED);
}

Test(test_header, ends_the_process_when_a_check_fails_in_a_thread)
{
    int status = child_status(start_failing_thread);
    check(child_failure_was_noted());
    check_int(WEXITSTATUS(status), HL_TEST_FAILED);
}

Test(test_header, waits_until_the_condition_is_true)
{
    int looks = 0;
    check(wait_until(is_third_look, &looks, 60000));
    check_int(looks, 3);
}

Test(test_header, stops_waiting_at_the_deadline)
{
    int looks = 0;
    int64_t before_ms = now_ms();
    check(!wait_until(is_never, &looks, 20));
    check(now_ms() - before_ms >= slow_ms(20) - 1);
    check(looks > 1);
}

Test(test_header, makes_deadlines_longer_where_programs_are_slow)
{
    setenv("HL_TEST_SLOWDOWN", "2.5", 1);
    check_int(slow_ms(1000), 2500);
    check_int((int64_t)hl_test_timeout_s(0), 1500);
    setenv("HL_TEST_SLOWDOWN", "nonsense", 1);
    check_int(slow_ms(1000), 1000);
}
