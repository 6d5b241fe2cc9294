/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The embedded scripts: each is the file that it says, whole, under the digest Redis gives it; and
 * what it can answer. */

#include "redis/script.h"
#include "support/redis_probe.h"
#include "support/redis_server.h"
#include "support/test.h"

#include <string.h>

static struct redis_server *server;

static void script_server_start(void)
{
    server = redis_server_start(NULL);
}

static void script_server_stop(void)
{
    redis_server_stop(server);
}

Test(script, has_the_digest_that_redis_gives_it, .init = script_server_start,
     .fini = script_server_stop)
{
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        check_str(script->sha1,
                  redis_str(server, "SCRIPT LOAD %b", (const char *)script->text, script->length));
    }
}

Test(script, is_found_by_redis_under_its_digest, .init = script_server_start,
     .fini = script_server_stop)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_LOCK_FORCE_RELEASE);
    check_str(redis_str(server, "SCRIPT LOAD %b", (const char *)script->text, script->length),
              script->sha1);
    redis_do(server, "HSET name 0d1c2b3a-4f5e-6789-abcd-ef0123456789:1 1");
    check_str(redis_str(server, "EVALSHA %s 1 name channel PUBLISH hirelock:", script->sha1), "1");
    check_str(redis_str(server, "EVALSHA %s 1 name channel PUBLISH hirelock:", script->sha1), "0");
    check_int(redis_int(server, "EXISTS name"), 0);
}

Test(script, carries_the_name_of_its_enum)
{
    check_str(hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE)->name, "lock_acquire");
    check_str(hli_script_get(HLI_SCRIPT_LOCK_INSPECT)->name, "lock_inspect");
    check_str(hli_script_get(HLI_SCRIPT_LOCK_KEEP)->name, "lock_keep");
}

Test(script, ends_where_its_file_ends)
{
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        check(script->length > 0);
        check_int(script->text[script->length - 1], '\n');
        check(memchr(script->text, '\0', script->length) == NULL);
    }
}

/* The server needs no comments: not a licence with each SCRIPT LOAD, nor in the error of a user who
 * may not load. None of the scripts has the dashes in a string. */
Test(script, has_no_comment_and_no_blank_line)
{
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        check_msg(!memmem(script->text, script->length, "--", 2), "%s", script->name);
        check_msg(!memmem(script->text, script->length, "\n\n", 2), "%s", script->name);
        check(script->text[0] != '\n');
    }
}

static bool asked_of(bool (*question)(hli_script_id, const struct hli_reply *), hli_script_id id,
                     const char *bytes)
{
    struct hli_parser *parser = hli_parser_new(NULL);
    struct hli_reply *reply = NULL;
    check_int(hli_parser_feed(parser, bytes, strlen(bytes)), 0);
    check_int(hli_parser_next(parser, &reply), 0);
    check_msg(reply != NULL, "%s is no whole reply", bytes);
    bool answer = question(id, reply);
    hli_reply_free(reply);
    hli_parser_free(parser);
    return answer;
}

static bool may_answer(hli_script_id id, const char *bytes)
{
    return asked_of(hli_script_may_answer, id, bytes);
}

/* Shapes of replies: the status, and how many items there are. */
static const struct script_answer {
    char shape;
    const char *bytes;
} answers[] = {
    {'a', "*1\r\n:-1\r\n"},                                          /* gone */
    {'b', "*1\r\n:0\r\n"},                                           /* no */
    {'c', "*1\r\n:1\r\n"},                                           /* yes */
    {'d', "*2\r\n:0\r\n$1\r\n0\r\n"},                                /* no, and a text */
    {'e', "*2\r\n:1\r\n:1\r\n"},                                     /* yes, and a number */
    {'f', "*2\r\n:-1\r\n:0\r\n"},                                    /* gone, and a number */
    {'g', "*2\r\n:3\r\n:5\r\n"},                                     /* two numbers */
    {'h', "*3\r\n:1\r\n$0\r\n\r\n:0\r\n"},                           /* to no field */
    {'h', "*3\r\n:1\r\n$3\r\nv:1\r\n:2\r\n"},                        /* to the next */
    {'i', "*4\r\n:0\r\n:-2\r\n$0\r\n\r\n$1\r\n0\r\n"},               /* free */
    {'j', "*4\r\n:1\r\n:9\r\n$3\r\nu:1\r\n$1\r\n1\r\n"},             /* held */
    {'k', "*4\r\n:2\r\n:-1\r\n:7\r\n:3\r\n"},                        /* pairs of numbers */
    {'l', "*6\r\n:0\r\n:9\r\n:1\r\n:2\r\n$3\r\nu:1\r\n$1\r\n1\r\n"}, /* busy */
    {'o', "*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n:1\r\n:0\r\n"},             /* both taken */
    {'p', "*2\r\n*1\r\n:2\r\n*6\r\n:0\r\n:9\r\n:1\r\n:2\r\n$3\r\nu:1\r\n$1\r\n1\r\n"}, /* busy */
    {'w',
     "*1\r\n*7\r\n:0\r\n:9\r\n:1\r\n:2\r\n$3\r\nu:1\r\n$1\r\n1\r\n$1\r\nx\r\n"}, /* and a tag */
    {'q', "*1\r\n*1\r\n:2\r\n"},                                                 /* left */
    {'t', "*1\r\n*3\r\n:1\r\n$0\r\n\r\n:0\r\n"},                                 /* released */
    {'r', "*2\r\n*3\r\n:1\r\n$0\r\n\r\n:0\r\n*1\r\n:0\r\n"},        /* released, and not held */
    {'s', "*7\r\n:1\r\n:-1\r\n:1\r\n:2\r\n$0\r\n\r\n:1\r\n:3\r\n"}, /* yes, and busy */
    {'y', "*6\r\n:1\r\n:0\r\n:5\r\n:9\r\n:0\r\n$1\r\nx\r\n"},       /* a term */
    {'u', "*7\r\n:0\r\n:9\r\n:1\r\n:2\r\n$3\r\nu:1\r\n$1\r\n1\r\n$1\r\nx\r\n"}, /* busy, tag */
    {'v', "*7\r\n:1\r\n:9\r\n$1\r\nu\r\n$1\r\n1\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\n2\r\n"}, /* held */
    {'m', "*0\r\n"}, /* nothing to tell */
};

/* And those that each script may give. */
static const struct script_says {
    hli_script_id id;
    const char *shapes;
} says[] = {
    /* clang-format off */
    {HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "a e l u"},
    {HLI_SCRIPT_FAIR_LOCK_FORCE_RELEASE, "b c"},
    {HLI_SCRIPT_FAIR_LOCK_RELEASE, "b d h j"},
    {HLI_SCRIPT_FENCE_RELEASE, "b j"},
    {HLI_SCRIPT_FENCE_SET, "c d"},
    {HLI_SCRIPT_LATCH_COUNT, "e l"},
    {HLI_SCRIPT_LATCH_COUNT_DOWN, "b c"},
    {HLI_SCRIPT_LATCH_DELETE, "b c"},
    {HLI_SCRIPT_LATCH_SET_COUNT, "b c"},
    {HLI_SCRIPT_LOCK_ACQUIRE, "a e l u"},
    {HLI_SCRIPT_LOCK_FORCE_RELEASE, "b c"},
    {HLI_SCRIPT_LOCK_INSPECT, "i j v"},
    {HLI_SCRIPT_LOCK_KEEP, "e f g"},
    {HLI_SCRIPT_LOCK_RECLAIM, "e f g k m"},
    {HLI_SCRIPT_LOCK_RELEASE, "b h"},
    {HLI_SCRIPT_LOCK_RENEW, "e f g k m"},
    {HLI_SCRIPT_LOCK_TAG, "b c"},
    {HLI_SCRIPT_MULTI_ACQUIRE, "o p q w"},
    {HLI_SCRIPT_MULTI_RELEASE, "q r t"},
    {HLI_SCRIPT_PERMIT_ACQUIRE, "e l"},
    {HLI_SCRIPT_PERMIT_ADD, "b c"},
    {HLI_SCRIPT_PERMIT_DELETE, "b c"},
    {HLI_SCRIPT_PERMIT_INSPECT, "h"},
    {HLI_SCRIPT_PERMIT_LEASE_LEFT, "a b e"},
    {HLI_SCRIPT_PERMIT_RECLAIM, "e f g k m"},
    {HLI_SCRIPT_PERMIT_RELEASE, "d h"},
    {HLI_SCRIPT_PERMIT_RENEW, "e f g k m"},
    {HLI_SCRIPT_PERMIT_SET, "b c"},
    {HLI_SCRIPT_PERMIT_UPDATE_LEASE, "a b c"},
    {HLI_SCRIPT_REDLOCK_ACQUIRE, "e f l"},
    {HLI_SCRIPT_REDLOCK_FORCE_RELEASE, "b c"},
    {HLI_SCRIPT_REDLOCK_INSPECT, "i j"},
    {HLI_SCRIPT_REDLOCK_RELEASE, "b c"},
    {HLI_SCRIPT_REDLOCK_RENEW, "e f g k m"},
    {HLI_SCRIPT_RW_FORCE_RELEASE, "b c"},
    {HLI_SCRIPT_RW_INSPECT, "i j v"},
    {HLI_SCRIPT_RW_READ_ACQUIRE, "a e l u"},
    {HLI_SCRIPT_RW_READ_RECLAIM, "e f g k m"},
    {HLI_SCRIPT_RW_READ_RELEASE, "b h"},
    {HLI_SCRIPT_RW_READ_RENEW, "e f g k m"},
    {HLI_SCRIPT_RW_WRITE_ACQUIRE, "a e l u"},
    {HLI_SCRIPT_RW_WRITE_RELEASE, "b h"},
    {HLI_SCRIPT_SEMAPHORE_ACQUIRE, "e l s v"},
    {HLI_SCRIPT_SEMAPHORE_ADD, "b c"},
    {HLI_SCRIPT_SEMAPHORE_AVAILABLE, "e"},
    {HLI_SCRIPT_SEMAPHORE_DRAIN, "e"},
    {HLI_SCRIPT_SEMAPHORE_TRY_SET, "b c"},
    {HLI_SCRIPT_SEMAPHORE_UNDO, "b h"},
    {HLI_SCRIPT_TERM, "y"},
    {HLI_SCRIPT_TOKEN_RAISE, "c"},
    {HLI_SCRIPT_WAITER_TAG, "c"},
    /* clang-format on */
};

Test(script, may_answer_in_its_own_shapes_only)
{
    const int scripts = (int)(sizeof says / sizeof says[0]);
    check_int(scripts, HLI_SCRIPT_COUNT);
    for (int i = 0; i < scripts; i++)
        for (size_t k = 0; k < sizeof answers / sizeof answers[0]; k++)
            check_msg(may_answer(says[i].id, answers[k].bytes) ==
                          (strchr(says[i].shapes, answers[k].shape) != NULL),
                      "%s: %s", hli_script_get(says[i].id)->name, answers[k].bytes);
}

Test(script, may_answer_nothing_else)
{
    static const char *const odd[] = {"+OK\r\n",
                                      ":1\r\n",
                                      "$1\r\n1\r\n",
                                      "$-1\r\n",
                                      "*1\r\n:2\r\n",
                                      "*1\r\n$1\r\n1\r\n",
                                      "*1\r\n*1\r\n:1\r\n",
                                      "*1\r\n$-1\r\n",
                                      "*2\r\n+OK\r\n:1\r\n",
                                      "*3\r\n:0\r\n:1\r\n:1\r\n",
                                      "*4\r\n:-1\r\n:1\r\n$1\r\nu\r\n$1\r\n1\r\n",
                                      "*5\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        for (int id = 0; id < HLI_SCRIPT_COUNT; id++)
            check_msg(!may_answer((hli_script_id)id, odd[i]), "%s: %s",
                      hli_script_get((hli_script_id)id)->name, odd[i]);
}

/* Of the shapes above, those that a caller may tell. */
Test(script, is_plain_when_something_was_taken_or_given_back_or_is_busy)
{
    static const struct script_says plain[] = {
        {HLI_SCRIPT_LOCK_ACQUIRE, "e l u"},
        {HLI_SCRIPT_LOCK_RELEASE, "h"},
        {HLI_SCRIPT_FAIR_LOCK_ACQUIRE, "e l u"},
        {HLI_SCRIPT_FAIR_LOCK_RELEASE, "h j"},
        {HLI_SCRIPT_SEMAPHORE_ACQUIRE, "e l s v"},
        {HLI_SCRIPT_SEMAPHORE_ADD, "c"},
        {HLI_SCRIPT_SEMAPHORE_UNDO, ""},
        {HLI_SCRIPT_LATCH_COUNT, "e l"},
        {HLI_SCRIPT_LATCH_COUNT_DOWN, "c"},
        {HLI_SCRIPT_REDLOCK_ACQUIRE, "e l"},
        {HLI_SCRIPT_REDLOCK_RELEASE, "c"},
        {HLI_SCRIPT_RW_READ_ACQUIRE, "e l u"},
        {HLI_SCRIPT_RW_WRITE_ACQUIRE, "e l u"},
        {HLI_SCRIPT_RW_READ_RELEASE, "h"},
        {HLI_SCRIPT_RW_WRITE_RELEASE, "h"},
        {HLI_SCRIPT_RW_INSPECT, ""},
        {HLI_SCRIPT_MULTI_ACQUIRE, "o p q w"},
        {HLI_SCRIPT_MULTI_RELEASE, "t"},
        {HLI_SCRIPT_FENCE_RELEASE, "j"},
        {HLI_SCRIPT_FENCE_SET, "c"},
        {HLI_SCRIPT_LOCK_RENEW, ""},
        {HLI_SCRIPT_LOCK_FORCE_RELEASE, ""},
        {HLI_SCRIPT_LOCK_INSPECT, ""},
        {HLI_SCRIPT_LOCK_KEEP, ""},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        for (size_t k = 0; k < sizeof answers / sizeof answers[0]; k++)
            check_msg(asked_of(hli_script_is_plain, plain[i].id, answers[k].bytes) ==
                          (strchr(plain[i].shapes, answers[k].shape) != NULL),
                      "%s: %s", hli_script_get(plain[i].id)->name, answers[k].bytes);
}
