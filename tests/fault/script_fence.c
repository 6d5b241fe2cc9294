/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The scripts that write behind a fence, called raw: the comparison of tokens, refused writes,
 * which leave no half of a write, and late copies. */

#include "base/random.h"
#include "script_raw.h"

#define FENCE "hirelock_fence:{d}"
#define RELEASING "0 0 0 " RAW_REDISSON " PUBLISH " RAW_QUEUE " hirelock: 4000 " RAW_OWN " 0 NUMSUB"

static const char *fence_load(hli_script_id id)
{
    const struct hli_script *script = hli_script_get(id);
    redis_do(server, "SCRIPT LOAD %b", (const char *)script->text, script->length);
    return script->sha1;
}

/* value token expire remember */
static const char *fenced_set(const char *words)
{
    char line[256];
    snprintf(line, sizeof line, "EVALSHA %s 2 d " FENCE " %s", fence_load(HLI_SCRIPT_FENCE_SET),
             words);
    return redis_str(server, line);
}

/* The field lets go of "n" and writes: value token expire remember. */
static const char *set_and_release(const char *field, const char *words)
{
    char line[512];
    snprintf(line, sizeof line, "EVALSHA %s 3 n d " FENCE " %s " RELEASING " %s",
             fence_load(HLI_SCRIPT_FENCE_RELEASE), field, words);
    return redis_str(server, line);
}

Law(script_fence, a_smaller_token_writes_nothing)
{
    check_str(fenced_set("a 33 0 0"), "1");
    check_str(fenced_set("b 32 0 0"), "0 33");
    check_str(redis_str(server, "GET d"), "a");
    check_str(redis_str(server, "GET " FENCE), "33");
    check_str(fenced_set("c 33 0 0"), "1"); /* the same hold, once more */
    check_str(fenced_set("d 34 0 0"), "1");
    check_str(fenced_set("e 33 0 0"), "0 34");
    check_str(redis_str(server, "GET d"), "d");
}

/* The largest first: each one after it is refused. */
Law(script_fence, tokens_are_compared_in_all_their_64_bits)
{
    static const char *const falling[] = {"9223372036854775807",
                                          "9223372036854775806",
                                          "9223372036854775800",
                                          "4611686018427387905",
                                          "4611686018427387904",
                                          "999999999999999999",
                                          "9007199254740993",
                                          "9007199254740992",
                                          "9007199254740991",
                                          "10000000001",
                                          "10000000000",
                                          "9999999999",
                                          "9999999998",
                                          "10",
                                          "9",
                                          "2",
                                          "1"};
    enum { COUNT = sizeof falling / sizeof falling[0] };
    for (int i = 0; i + 1 < COUNT; i++) {
        char words[64], refusal[64];
        redis_do(server, "DEL " FENCE);
        snprintf(words, sizeof words, "v %s 0 0", falling[i]);
        check_str(fenced_set(words), "1");
        snprintf(refusal, sizeof refusal, "0 %s", falling[i]);
        snprintf(words, sizeof words, "v %s 0 0", falling[i + 1]);
        check_str(fenced_set(words), refusal);
    }
}

Law(script_fence, tokens_of_any_size_are_compared_as_c_compares_them)
{
    int64_t last = 1;
    for (int i = 0; i < 1000; i++) {
        /* of every length, and near the last one */
        int64_t token = (int64_t)(hli_random_u64() >> (1 + hli_random_upto(61)) | 1);
        if (i % 3 == 0)
            token = last - (last > 1) + hli_random_upto(2);
        if (i % 20 == 0) {
            last = 1 + hli_random_upto(INT64_C(1) << 40);
            redis_do(server, "SET " FENCE " %lld", (long long)last);
        }
        char words[64];
        snprintf(words, sizeof words, "v %lld 0 0", (long long)token);
        const char *said = fenced_set(words);
        check_msg((strcmp(said, "1") == 0) == (token >= last), "%lld after %lld: %s",
                  (long long)token, (long long)last, said);
        last = token > last ? token : last;
    }
}

Law(script_fence, a_value_expires_and_its_fence_stays_for_the_longest_time_that_was_asked_for)
{
    check_str(fenced_set("a 5 5000 60000"), "1");
    int64_t value_ms = redis_int(server, "PTTL d"), fence_ms = redis_int(server, "PTTL " FENCE);
    check(value_ms > 3000 && value_ms <= 5000);
    check(fence_ms > 50000 && fence_ms <= 60000);
    check_str(fenced_set("a 6 0 1000"), "1"); /* shortens nothing */
    check_int(redis_int(server, "PTTL d"), -1);
    check(redis_int(server, "PTTL " FENCE) > 50000);
    check_str(fenced_set("a 7 0 90000"), "1");
    check(redis_int(server, "PTTL " FENCE) > 80000);
    check_str(fenced_set("a 7 0 0"), "1"); /* for ever */
    check_int(redis_int(server, "PTTL " FENCE), -1);
    check_str(fenced_set("a 8 0 1000"), "1");
    check_int(redis_int(server, "PTTL " FENCE), -1);
    check_str(redis_str(server, "GET " FENCE), "8");
}

Law(script_fence, a_fence_that_is_no_token_is_an_error_and_stays_as_it_is)
{
    static const char *const odd[] = {"x", "-1", "0", "007", "1e3", "92233720368547758070", "5.0"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        redis_do(server, "SET " FENCE " %s", odd[i]);
        check_has(fenced_set("v 8 0 0"), "WRONGTYPE");
        check_str(redis_str(server, "GET " FENCE), odd[i]);
    }
    redis_do(server, "DEL " FENCE);
    redis_do(server, "LPUSH " FENCE " 1");
    check_has(fenced_set("v 8 0 0"), "WRONGTYPE");
    check_int(redis_int(server, "EXISTS d"), 0);
}

Law(script_fence, a_write_that_a_full_server_refuses_changes_nothing)
{
    check_str(fenced_set("a 5 0 0"), "1");
    redis_do(server, "CONFIG SET maxmemory 1");
    check_has(fenced_set("b 6 0 0"), "OOM");
    redis_do(server, "CONFIG SET maxmemory 0");
    check_str(redis_str(server, "GET d"), "a");
    check_str(redis_str(server, "GET " FENCE), "5");
}

Law(script_fence, a_value_is_never_written_without_its_fence)
{
    static const char *const denials[] = {"resetkeys ~d", "resetkeys ~hirelock_fence:*", "-set",
                                          "-get"};
    for (size_t i = 0; i < sizeof denials / sizeof denials[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "ACL SETUSER hltest %s", denials[i]);
        redis_do(server, line);
        const char *said = fenced_set("v 6 0 0");
        redis_do(server, "ACL SETUSER hltest allkeys allcommands");
        check_msg(strncmp(said, "1", 1) != 0, "%s", denials[i]);
        check_int(redis_int(server, "EXISTS d " FENCE), 0);
    }
}

Law(script_fence, the_field_that_holds_writes_and_lets_go)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(set_and_release("u:1", "v 0 0 0"), RAW_DONE " 1");
    check_str(redis_str(server, "GET d"), "v");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_int(redis_int(server, "EXISTS " FENCE), 0); /* without a token there is none */
}

Law(script_fence, a_lock_of_any_count_is_released)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(acquire("u:1 5000 3"), RAW_HAD);
    check_str(set_and_release("u:1", "v 0 0 0"), RAW_DONE " 1");
    check_str(redis_str(server, "GET d"), "v");
}

Law(script_fence, a_field_that_does_not_hold_writes_nothing)
{
    check_str(set_and_release("u:1", "v 0 0 0"), "0");
    check_str(acquire("u:2 5000 1"), RAW_TAKEN);
    check_str(set_and_release("u:1", "v 9 0 0"), "0");
    check_holder("u:2 1");
    check_int(redis_int(server, "EXISTS d " FENCE), 0);
}

Law(script_fence, a_repeated_copy_does_not_write_over_what_came_after_it)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(set_and_release("u:1", "first 0 0 0"), RAW_DONE " 1");
    redis_do(server, "SET d somebody");
    check_str(set_and_release("u:1", "first 0 0 0"), "0");
    check_str(acquire("u:2 5000 1"), RAW_TAKEN);
    check_str(set_and_release("u:1", "first 0 0 0"), "0");
    check_str(redis_str(server, "GET d"), "somebody");
    check_holder("u:2 1");
}

/* The field stands, with a count of 0, while the key rests. */
Law(script_fence, a_repeated_copy_that_finds_the_key_resting_does_not_write_again)
{
    char line[512];
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    snprintf(line, sizeof line,
             "EVALSHA %s 3 n d " FENCE " u:1 0 0 700 " RAW_REDISSON " PUBLISH " RAW_QUEUE
             " hirelock: 4000 " RAW_OWN " 0 NUMSUB v 0 0 0",
             fence_load(HLI_SCRIPT_FENCE_RELEASE));
    check_str(redis_str(server, line), RAW_UNSEEN " 1");
    check_holder("u:1 0");
    redis_do(server, "SET d somebody");
    check_str(redis_str(server, line), RAW_UNSEEN " 0");
    check_str(redis_str(server, "GET d"), "somebody");
    check(redis_wait_int(server, 0, 5000, "EXISTS n"));
}

Law(script_fence, a_count_that_a_stranger_wrote_over_is_no_hold)
{
    redis_do(server, "HSET n u:1 odd");
    check_str(set_and_release("u:1", "v 0 0 0"), RAW_DONE " 0");
    check_int(redis_int(server, "EXISTS n d"), 0);
}

Law(script_fence, a_larger_token_refuses_the_value_and_the_lock_is_released)
{
    check_str(fenced_set("a 33 0 0"), "1");
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    check_str(set_and_release("u:1", "b 32 0 0"), RAW_DONE " 33");
    check_int(redis_int(server, "EXISTS n"), 0);
    check_str(redis_str(server, "GET d"), "a");
    check_str(acquire("u:2 5000 1"), RAW_TAKEN);
    check_str(set_and_release("u:2", "c 34 0 0"), RAW_DONE " 1");
    check_str(redis_str(server, "GET " FENCE), "34");
    check_str(redis_str(server, "GET d"), "c");
}

Law(script_fence, a_write_refused_for_memory_does_not_keep_the_lock)
{
    check_str(acquire("u:1 5000 1"), RAW_TAKEN);
    fence_load(HLI_SCRIPT_FENCE_RELEASE);
    redis_do(server, "CONFIG SET maxmemory 1");
    const char *done = set_and_release("u:1", "v 0 0 0");
    check_msg(strncmp(done, RAW_DONE " ", strlen(RAW_DONE " ")) == 0, "%s", done);
    check_has(done, "OOM command not allowed"); /* Redis 6 puts the line of the script before it */
    redis_do(server, "CONFIG SET maxmemory 0");
    check_int(redis_int(server, "EXISTS n d"), 0);
}

Law(script_fence, the_lock_is_granted_on_and_told_as_by_any_release)
{
    redisContext *ear = ear_open("hirelock:B " RAW_REDISSON);
    queue_of("B:1");
    check_str(set_and_release("A:1", "v 0 0 0"), "1 B:1 -1 1");
    check_grant(ear, "B:1", 0);
    check_holder("B:1 1");
    check_str(redis_str(server, "GET d"), "v");
    check_str(set_and_release("B:1", "w 0 0 0"), RAW_UNSEEN " 1");
    ear_check(ear, RAW_REDISSON, "0");
    redisFree(ear);
}

Law(script_fence, a_waiter_leaves_the_queue_and_writes_nothing)
{
    queue_of("B:1");
    check_str(set_and_release("B:1", "v 0 0 0"), "0");
    check_int(queue_length(), 0);
    check_holder("A:1 1");
    check_int(redis_int(server, "EXISTS d"), 0);
}
