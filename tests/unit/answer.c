/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Error replies, sorted: by their first word, and by what lies within when a script failed. */

#include "redis/answer.h"

#include "support/test.h"

#include <string.h>

/* Good until the next but one. */
static struct hli_answer answer_of(const char *text)
{
    static union {
        struct hli_reply reply;
        char room[sizeof(struct hli_reply) + 512];
    } slot[2];
    static int next;
    struct hli_reply *reply = &slot[next++ % 2].reply;
    check(strlen(text) < 512);
    reply->kind = HLI_REPLY_ERROR;
    reply->length = strlen(text);
    memcpy((char *)reply + offsetof(struct hli_reply, text), text, reply->length + 1);
    return hli_answer_from(reply);
}

static const struct sorted {
    const char *text;
    enum hli_verdict verdict;
    int code;
} sorted[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", HLI_BOUNCED, HL_ESERVER},
    {"MOVED 15495 127.0.0.1:7143", HLI_BOUNCED, HL_ESERVER},
    {"ASK 15495 127.0.0.1:7143", HLI_BOUNCED, HL_ESERVER},
    {"LOADING Redis is loading the dataset in memory", HLI_REFUSED, HL_ESERVER},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     HLI_REFUSED, HL_ESERVER},
    {"READONLY You can't write against a read only replica.", HLI_REFUSED, HL_ESERVER},
    {"OOM command not allowed when used memory > 'maxmemory'.", HLI_REFUSED, HL_ESERVER},
    {"NOREPLICAS Not enough good replicas to write.", HLI_REFUSED, HL_ESERVER},
    {"MISCONF Redis is configured to save RDB snapshots", HLI_REFUSED, HL_ESERVER},
    {"MASTERDOWN Link with MASTER is down", HLI_REFUSED, HL_ESERVER},
    {"CLUSTERDOWN Hash slot not served", HLI_REFUSED, HL_ESERVER},
    {"TRYAGAIN Multiple keys request during rehashing of slot", HLI_REFUSED, HL_ESERVER},
    {"UNKILLABLE Sorry the script already executed write commands", HLI_REFUSED, HL_ESERVER},
    {"ERR max number of clients reached", HLI_REFUSED, HL_ESERVER},
    {"ERR Error running script: Script killed by user with SCRIPT KILL...", HLI_REFUSED,
     HL_ESERVER},
    {"SOMETHING that nobody has heard of", HLI_REFUSED, HL_ESERVER},
    {"", HLI_REFUSED, HL_ESERVER},
    {"CROSSSLOT Keys in request don't hash to the same slot", HLI_FAILED, HL_ESERVER},
    {"WRONGTYPE the key holds no lock", HLI_FAILED, HL_ESERVER},
    {"ERR increment or decrement would overflow", HLI_FAILED, HL_ESERVER},
    {"ERR value is not an integer or out of range", HLI_FAILED, HL_ESERVER},
    {"NOPROTO unsupported protocol version", HLI_FAILED, HL_ESERVER},
    {"ERR unknown command 'EVALSHA', with args beginning with: ", HLI_FAILED, HL_ESERVER},
    {"HIRELOCK bad lease time or hold count", HLI_FAILED, HL_EINVAL},
    {"WRONGPASS invalid username-password pair or user is disabled.", HLI_FAILED, HL_EDENIED},
    {"NOPERM User u has no permissions to run the 'evalsha' command", HLI_FAILED, HL_EDENIED},
    {"DENIED Redis is running in protected mode", HLI_FAILED, HL_EDENIED},
};

Test(answer, sorts_errors_by_their_first_word)
{
    for (size_t i = 0; i < sizeof sorted / sizeof sorted[0]; i++) {
        struct hli_answer answer = answer_of(sorted[i].text);
        check_msg(answer.verdict == sorted[i].verdict, "%s: %d", sorted[i].text, answer.verdict);
        check_msg(answer.code == sorted[i].code, "%s: %s", sorted[i].text,
                  hl_err_name(answer.code));
        check_str(answer.text, sorted[i].text);
        check(answer.reply == NULL);
    }
}

/* The error texts for users replace Redis's words for programmers. */
Test(answer, says_what_to_do_where_the_server_does_not)
{
    static const struct {
        const char *text, *says;
        int code;
    } said[] = {
        {"NOAUTH Authentication required.", "in the URL or in the options", HL_EDENIED},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", "another kind",
         HL_ESERVER},
        {"ERR The user executing the script can't run this command or subcommand", "ACL LOG",
         HL_EDENIED},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct hli_answer answer = answer_of(said[i].text);
        check_msg(strstr(answer.text, said[i].says), "%s: %s", said[i].text, answer.text);
        check_int(answer.verdict, HLI_FAILED);
        check_int(answer.code, said[i].code);
    }
}

/* As redis-server 6, 7.0 and 8 put it when a command inside a script fails. */
static const struct sorted inner[] = {
    {"ERR Error running script (call to f_7d4a): @user_script:21: WRONGTYPE Operation against a "
     "key holding the wrong kind of value",
     HLI_FAILED, HL_ESERVER},
    {"WRONGTYPE Operation against a key holding the wrong kind of value script: 7d4a, on "
     "@user_script:21.",
     HLI_FAILED, HL_ESERVER},
    {"ERR Error running script (call to f_7d4a): @user_script:3: @user_script: 3: -OOM command "
     "not allowed when used memory > 'maxmemory'.",
     HLI_REFUSED, HL_ESERVER},
    {"OOM command not allowed when used memory > 'maxmemory'. script: 7d4a, on @user_script:3.",
     HLI_REFUSED, HL_ESERVER},
    {"ERR Error running script (call to f_7d4a): @user_script:21: -NOPERM this user has no "
     "permissions to access one of the keys used as arguments",
     HLI_FAILED, HL_EDENIED},
    {"ERR The user executing the script can't run this command or subcommand script: 7d4a, on "
     "@user_script:21.",
     HLI_FAILED, HL_EDENIED},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the "
     "command arguments script: 7d4a, on @user_script:21.",
     HLI_FAILED, HL_EDENIED},
    {"ERR ACL failure in script: User u has no permissions to run the 'hget' command script: "
     "7d4a, on @user_script:21.",
     HLI_FAILED, HL_EDENIED},
    {"ERR ACL failure in script: No permissions to access a key script: 7d4a, on @user_script:1.",
     HLI_FAILED, HL_EDENIED},
    {"ERR Error running script (call to f_7d4a): @user_script:47: @user_script: 47: -READONLY You "
     "can't write against a read only replica.",
     HLI_REFUSED, HL_ESERVER},
    {"@user_script: 38: -OOM command not allowed when used memory > 'maxmemory'.", HLI_REFUSED,
     HL_ESERVER},
    {"ERR Error running script (call to f_7d4a): @user_script:3: @user_script: 3: -MOVED 7 h:1",
     HLI_REFUSED, HL_ESERVER},
    {"ERR Write commands are not allowed from read-only scripts. script: 7d4a, on @user_script:3.",
     HLI_REFUSED, HL_ESERVER},
};

Test(answer, finds_the_inner_error_of_a_script_in_every_servers_wording)
{
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        struct hli_answer answer = answer_of(inner[i].text);
        check_msg(answer.verdict == inner[i].verdict, "%s: %d", inner[i].text, answer.verdict);
        check_msg(answer.code == inner[i].code, "%s: %s", inner[i].text, hl_err_name(answer.code));
    }
}

/* Else a master that was demoted would never be left on Redis 6. */
Test(answer, is_what_the_inner_error_says_first)
{
    static const char *const texts[] = {
        "READONLY You can't write against a read only replica.",
        "ERR Error running script (call to f_7d4a): @user_script:47: @user_script: 47: -READONLY "
        "You can't write against a read only replica.",
        "@user_script: 47: -READONLY You can't write against a read only replica.",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hli_answer answer = answer_of(texts[i]);
        check_msg(hli_answer_is(&answer, "READONLY"), "%s", texts[i]);
        check_str(answer.text, texts[0]);
    }
    struct hli_answer other = answer_of("ERR READONLY is not the first word");
    check(!hli_answer_is(&other, "READONLY"));
}

Test(answer, takes_only_whole_words)
{
    check_int(answer_of("BUSYGROUP Consumer Group name already exists").verdict, HLI_REFUSED);
    check_int(answer_of("NOSCRIPTS").verdict, HLI_REFUSED);
    struct hli_answer busy = answer_of("BUSY"), group = answer_of("BUSYGROUP x");
    check(hli_answer_is(&busy, "BUSY") && !hli_answer_is(&group, "BUSY"));
}

Test(answer, that_is_too_large_ends_its_request_and_no_other)
{
    const struct hli_reply reply = {.kind = HLI_REPLY_ARRAY, .is_beyond = true};
    struct hli_answer answer = hli_answer_from(&reply);
    check_int(answer.verdict, HLI_FAILED);
    check_int(answer.code, HL_EPROTO);
    check(answer.reply == NULL);
}

Test(answer, is_the_reply_when_it_is_no_error)
{
    const struct hli_reply reply = {.kind = HLI_REPLY_INTEGER, .integer = 1};
    struct hli_answer answer = hli_answer_from(&reply);
    check_int(answer.verdict, HLI_REPLIED);
    check(answer.reply == &reply && answer.code == HL_OK);
    check(!hli_answer_is(&answer, "OOM"));
}

/* The server's word stands first, or behind the place where it was met; a name or a reason of
 * another code that looks like one is none. */
Test(answer, the_reason_is_the_servers_word_or_that_of_the_code)
{
    check_int(hli_answer_reason(HL_ESERVER, "OOM command not allowed"), HL_REASON_OOM);
    check_int(hli_answer_reason(HL_EINDOUBT, "MISCONF Redis is configured"), HL_REASON_MISCONF);
    check_int(hli_answer_reason(HL_ESERVER, "connect a:1: LOADING the data"), HL_REASON_LOADING);
    check_int(hli_answer_reason(HL_ESERVER, "BUSY Redis is busy"), HL_REASON_SCRIPT);
    check_int(hli_answer_reason(HL_ESERVER, "WRONGTYPE it is a list"), HL_REASON_WRONGTYPE);
    check_int(hli_answer_reason(HL_ESERVER, "OOMPH"), HL_REASON_SERVER);
    check_int(hli_answer_reason(HL_EINDOUBT, "no answer in time"), HL_REASON_IN_DOUBT);
    check_int(hli_answer_reason(HL_ECONN, "OOM"), HL_REASON_UNREACHABLE);
    check_int(hli_answer_reason(HL_EDENIED, "NOPERM no"), HL_REASON_DENIED);
    check_int(hli_answer_reason(HL_EEXIST, "it is there"), HL_REASON_OTHER);
    check_int(hli_answer_reason(-19, "of a later version"), HL_REASON_OTHER);
}
