/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The line of waiters of kinds whose releases grant to nobody, called raw: who enters it, whom it
 * bars, and who leaves it. */

#include "script_notes.h"

#define CHANNEL "redisson_rwlock:{n}"
#define WRITER "hirelock_rw_writer:{n}"
#define DEAF " " RAW_QUEUE " 60000 1"
#define HEARS " " RAW_QUEUE " 60000 0"
#define TRIES " " RAW_QUEUE " 0 0"

/* In what follows a waiter's words say how it waits. */
static const char *write_acquire(const char *field, const char *waits)
{
    char words[160];
    snprintf(words, sizeof words, "%s 5000 1 " WRITER " 0 none%s", field, waits);
    return run_script(HLI_SCRIPT_RW_WRITE_ACQUIRE, "n", words);
}

static const char *read_acquire(const char *field, const char *waits)
{
    char words[160];
    snprintf(words, sizeof words, "%s 5000 1 " WRITER " none none%s", field, waits);
    return run_script(HLI_SCRIPT_RW_READ_ACQUIRE, "n", words);
}

/* By a holder, or of a wait that is over. */
static const char *write_release(const char *field, const char *queue)
{
    char words[160];
    snprintf(words, sizeof words, "%s 0 0 0 " CHANNEL " PUBLISH " WRITER "%s", field, queue);
    return run_script(HLI_SCRIPT_RW_WRITE_RELEASE, "n", words);
}

static const char *take_permit(const char *id, const char *field, const char *waits)
{
    char words[160];
    snprintf(words, sizeof words, "%s 5000 redisson_sc:{n} PUBLISH %s%s", id, field, waits);
    return run_script(HLI_SCRIPT_PERMIT_ACQUIRE, "n", words);
}

static const char *take_unit(const char *id, const char *field, const char *waits)
{
    char words[160];
    snprintf(words, sizeof words, NOTES " %s 60000 %s%s 1 1 0", id, field, waits);
    return run_script(HLI_SCRIPT_SEMAPHORE_ACQUIRE, "n", words);
}

static void check_said(const char *said, const char *begins)
{
    check_msg(strncmp(said, begins, strlen(begins)) == 0, "%s", said);
}

/* "0 pttl s us holder count" */
static void check_turn_of(const char *said, const char *holder)
{
    char end[80];
    snprintf(end, sizeof end, " %s 0", holder);
    check_said(said, "0 ");
    check_has(said, end);
}

static void check_line(const char *fields)
{
    check_str(redis_str(server, "ZRANGEBYSCORE " RAW_QUEUE " 0 4e15"), fields);
    bool has_mark = strcmp(redis_str(server, "ZSCORE " RAW_QUEUE " @"), "(nil)") != 0;
    check_int(redis_int(server, "ZCOUNT " RAW_QUEUE " 0 4e15") + has_mark,
              redis_int(server, "ZCOUNT " RAW_QUEUE " 4e15 inf")); /* a sign of life each */
}

/* Its process is dead: its sign ended a moment ago. */
static void end_sign(const char *field)
{
    redis_do(server, "ZADD " RAW_QUEUE " %lld @%s",
             4000000000000000LL + (long long)server_now_ms() * 1000 - 1000, field);
}

Law(script_turns, nobody_lines_up_while_all_hear)
{
    check_str(write_acquire("A:1:write", HEARS), RAW_TAKEN);
    check_said(write_acquire("B:1:write", HEARS), "0 ");
    check_said(read_acquire("C:1", HEARS), "0 ");
    check_int(redis_int(server, "EXISTS " RAW_QUEUE), 0);
    check_str(write_release("A:1:write", ""), RAW_UNSEEN);
    check_str(write_acquire("A:2:write", HEARS), RAW_TAKEN);
}

Law(script_turns, a_writer_whose_turn_it_is_not_leaves_a_free_lock_alone)
{
    check_str(write_acquire("A:1:write", DEAF), RAW_TAKEN);
    check_said(write_acquire("B:1:write", DEAF), "0 ");
    check_str(write_release("A:1:write", ""), RAW_UNSEEN);
    check_turn_of(write_acquire("A:2:write", TRIES), "B:1:write");
    check_line("B:1:write");
    check_turn_of(write_acquire("A:2:write", DEAF), "B:1:write");
    check_line("B:1:write A:2:write");
    check_str(write_acquire("B:1:write", DEAF), RAW_TAKEN);
    check_line("A:2:write");
}

Law(script_turns, who_hears_lines_up_behind_who_does_not)
{
    check_str(write_acquire("A:1:write", HEARS), RAW_TAKEN);
    check_said(write_acquire("B:1:write", DEAF), "0 ");
    check_said(write_acquire("C:1:write", HEARS), "0 ");
    check_said(write_acquire("D:1:write", TRIES), "0 ");
    check_line("B:1:write C:1:write");
    check(redis_int(server, "PTTL " RAW_QUEUE) > 30000);
}

/* It may publish nothing, so its release wakes nobody. */
Law(script_turns, who_hears_lines_up_where_one_took_that_is_not_heard)
{
    check_str(write_acquire("A:1:write", DEAF), RAW_TAKEN);
    check_said(write_acquire("B:1:write", HEARS), "0 ");
    check_line("B:1:write");
    check_str(write_release("A:1:write", ""), RAW_UNSEEN);
    check_turn_of(write_acquire("A:2:write", DEAF), "B:1:write");
    check_str(write_acquire("B:1:write", HEARS), RAW_TAKEN);
}

Law(script_turns, a_waiter_whose_sign_of_life_has_ended_is_passed_over)
{
    check_str(write_acquire("A:1:write", DEAF), RAW_TAKEN);
    check_said(write_acquire("B:1:write", DEAF), "0 ");
    check_said(write_acquire("C:1:write", DEAF), "0 ");
    check_str(write_release("A:1:write", ""), RAW_UNSEEN);
    end_sign("B:1:write");
    check_turn_of(write_acquire("D:1:write", DEAF), "C:1:write");
    check_line("C:1:write D:1:write");
    check_str(write_acquire("C:1:write", DEAF), RAW_TAKEN);
}

Law(script_turns, a_short_sign_does_not_end_the_line_of_others)
{
    check_str(write_acquire("A:1:write", DEAF), RAW_TAKEN);
    check_said(write_acquire("B:1:write", DEAF), "0 ");
    check_said(write_acquire("C:1:write", " " RAW_QUEUE " 100 1"), "0 ");
    check(redis_int(server, "PTTL " RAW_QUEUE) > 30000);
}

Law(script_turns, a_writers_wait_that_is_over_leaves_the_line)
{
    check_str(write_acquire("A:1:write", DEAF), RAW_TAKEN);
    check_said(write_acquire("B:1:write", DEAF), "0 ");
    check_said(write_acquire("C:1:write", DEAF), "0 ");
    check_str(write_release("B:1:write", " " RAW_QUEUE), "0");
    check_line("C:1:write");
}

Law(script_turns, readers_go_together_and_behind_a_writer)
{
    check_str(write_acquire("A:1:write", DEAF), RAW_TAKEN);
    check_said(read_acquire("B:1", DEAF), "0 ");
    check_said(read_acquire("C:1", DEAF), "0 ");
    check_said(write_acquire("D:1:write", DEAF), "0 ");
    check_said(read_acquire("E:1", DEAF), "0 ");
    check_str(write_release("A:1:write", ""), RAW_UNSEEN);
    check_str(read_acquire("C:1", DEAF), RAW_TAKEN);
    check_turn_of(read_acquire("E:1", DEAF), "D:1:write");
    check_str(read_acquire("B:1", DEAF), RAW_HAD);
    check_line("D:1:write E:1");
    check_str(read_acquire("B:1", DEAF), RAW_HAD); /* a repeated command, or one more level */
}

Law(script_turns, a_permit_is_left_to_whose_turn_it_is)
{
    redis_do(server, "SET n 1");
    check_str(take_permit("aaaaaaaaaaaaaaaa", "A:1", DEAF), RAW_TAKEN);
    check_said(take_permit("bbbbbbbbbbbbbbbb", "B:1", DEAF), "0 ");
    check_str(
        run_script(HLI_SCRIPT_PERMIT_RELEASE, "n", "aaaaaaaaaaaaaaaa redisson_sc:{n} PUBLISH"),
        "1  -1");
    check_has(take_permit("cccccccccccccccc", "A:2", DEAF), "  0");
    check_int(redis_int(server, "GET n"), 1);
    check_line("B:1 A:2");
    check_str(take_permit("bbbbbbbbbbbbbbbb", "B:1", DEAF), RAW_TAKEN);
    check_str(take_permit("bbbbbbbbbbbbbbbb", "B:1", DEAF), RAW_HAD);
    check_line("A:2");
    check_said(run_script(HLI_SCRIPT_PERMIT_RELEASE, "n",
                          "cccccccccccccccc redisson_sc:{n} PUBLISH none A:2 " RAW_QUEUE),
               "0 0");
    check_line("");
}

Law(script_turns, a_unit_of_a_semaphore_is_left_to_whose_turn_it_is)
{
    redis_do(server, "SET n 0");
    check_str(take_unit("1", "A:1", DEAF), "0 -1 0 0  0");
    redis_do(server, "SET n 1");
    check_str(take_unit("2", "B:2", DEAF), "0 -1 0 0  0");
    check_int(redis_int(server, "GET n"), 1);
    check_line("A:1 B:2");
    check_str(take_unit("1", "A:1", DEAF), "1 1");
    check_str(take_unit("1", "A:1", DEAF), "1 1"); /* repeated */
    check_int(redis_int(server, "GET n"), 0);
    check_line("B:2");
    check_str(run_script(HLI_SCRIPT_SEMAPHORE_UNDO, "n",
                         NOTES " 2 60000 redisson_sc:{n} PUBLISH B:2 " RAW_QUEUE " 0 0"),
              "0");
    check_line("");
}
