/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A login: its memory, its command, and when it is renewed. */

#include "redis/login.h"

#include "base/secret.h"
#include "support/test.h"

#include <string.h>

static struct hli_login login_lasting(int64_t ms)
{
    return (struct hli_login){.given_at = HLI_MS(5000), .expires_at = HLI_MS(5000 + ms)};
}

Test(login, is_renewed_after_seven_or_eight_tenths_of_its_life)
{
    const struct hli_login hour = login_lasting(3600000);
    int64_t earliest = INT64_MAX, latest = 0;

    for (uint64_t dice = 0; dice < 1000; dice++) {
        hli_ns at = hli_login_renew_at(&hour, dice * UINT64_C(0x9e3779b97f4a7c15));
        earliest = at < earliest ? at : earliest;
        latest = at > latest ? at : latest;
    }
    check(earliest >= HLI_MS(5000 + 2520000) && earliest < HLI_MS(5000 + 2550000));
    check(latest <= HLI_MS(5000 + 2880000) && latest > HLI_MS(5000 + 2850000));
}

Test(login, is_renewed_once_a_second_at_most)
{
    for (int64_t ms = 1; ms < 1250; ms += 13) {
        const struct hli_login brief = login_lasting(ms);
        check_int(hli_login_renew_at(&brief, 0), HLI_MS(6000));
    }
}

Test(login, without_end_is_never_renewed)
{
    const struct hli_login lasting = {.given_at = HLI_MS(5000)};

    check_int(hli_login_renew_at(&lasting, 7), HLI_NEVER);
}

Test(login, is_tried_again_more_often_as_its_end_comes_near)
{
    check_int(hli_login_retry_at(HLI_MS(3600000), 0), HLI_MS(60000));
    check_int(hli_login_retry_at(HLI_MS(20000), 0), HLI_MS(5000));
    check_int(hli_login_retry_at(HLI_MS(20000), HLI_MS(18000)), HLI_MS(19000));
    check_int(hli_login_retry_at(HLI_MS(20000), HLI_MS(50000)), HLI_MS(51000)); /* and behind it */
}

static void expect_auth(const char *username, const char *password, const char *bytes)
{
    struct hli_login login = {0};
    struct hli_op op = {.script = 3};

    check_int(hli_login_set(&login, username, password), 0);
    check_int(hli_login_write(&login, &op), 0);
    check_int(op.length, strlen(bytes));
    check(memcmp(op.bytes, bytes, op.length) == 0);
    check_int(op.script, -1);
    hli_op_wipe(&op);
    check(!op.bytes);
    hli_login_deinit(&login);
    check(!login.username && !login.password);
}

Test(login, is_written_as_auth)
{
    expect_auth(NULL, "pw", "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n");
    expect_auth("app", "a longer one", "*3\r\n$4\r\nAUTH\r\n$3\r\napp\r\n$12\r\na longer one\r\n");
}

Test(login, has_room_for_the_longest_words)
{
    char *user = calloc(1, HLI_LOGIN_LIMIT + 1), *password = calloc(1, HLI_LOGIN_LIMIT + 1);
    struct hli_login login = {0};
    struct hli_op op = {0};

    check(user && password);
    memset(user, 'u', HLI_LOGIN_LIMIT);
    memset(password, 'p', HLI_LOGIN_LIMIT);
    check_int(hli_login_set(&login, user, password), 0);
    check_int(hli_login_write(&login, &op), 0);
    check_int(op.length,
              strlen("*3\r\n$4\r\nAUTH\r\n") + 2 * (strlen("$16384\r\n\r\n") + HLI_LOGIN_LIMIT));
    hli_op_wipe(&op);
    hli_login_deinit(&login);
    free(user);
    free(password);
}

Test(login, keeps_what_it_is_not_given)
{
    struct hli_login login = {0};

    check_int(hli_login_set(&login, "app", "one"), 0);
    check_int(hli_login_set(&login, NULL, "two"), 0);
    check_str(login.username, "app");
    check_str(login.password, "two");
    hli_login_deinit(&login);
}

Test(secret, is_empty_at_first_and_may_be_of_any_length)
{
    static const size_t lengths[] = {0, 1, 4079, 4080, 4096, 100000};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char *secret = hli_secret_new(lengths[i]);
        check(secret);
        for (size_t k = 0; k <= lengths[i]; k++)
            check(secret[k] == '\0');
        memset(secret, 'x', lengths[i]);
        check_int(strlen(secret), lengths[i]);
        hli_secret_free(secret);
    }
    check(!hli_secret_new(SIZE_MAX));
    check(!hli_secret_new(SIZE_MAX / 4));
    hli_secret_free(NULL);
}

static int judged(const char *error, hl_error *err)
{
    const struct hli_answer answer = {.verdict = HLI_REFUSED, .code = HL_ESERVER, .text = error};

    return hli_login_judge(&answer, "it refused", err);
}

/* The words of Redis 2.8 to 8, Valkey 8 and proxies. */
Test(login, is_denied_by_the_words_that_mean_it)
{
    static const char *const denials[] = {
        "WRONGPASS invalid username-password pair or user is disabled.",
        "WRONGPASS invalid username-password pair",
        "NOAUTH Authentication required.",
        "NOPERM this user has no permissions",
        "DENIED Redis is running in protected mode",
        "ERR invalid password",
        "ERR Client sent AUTH, but no password is set",
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?",
        "ERR wrong number of arguments for 'auth' command",
        "ERR unknown command 'AUTH', with args beginning with: "};

    for (size_t i = 0; i < sizeof denials / sizeof denials[0]; i++) {
        hl_error err = HL_ERROR_INIT;
        check_int(judged(denials[i], &err), HL_EDENIED);
        check_has(err.text, "it refused (");
        check(strlen(err.text) < sizeof "it refused (WRONGPASS)");
    }
}

Test(login, is_not_denied_by_errors_that_pass)
{
    static const char *const others[] = {"ERR upstream failure",
                                         "no upstream host",
                                         "ERR server is being restarted, try again",
                                         "LOADING Redis is loading the dataset in memory",
                                         "BUSY Redis is busy running a script",
                                         "ERR max number of clients reached",
                                         "MASTERDOWN Link with MASTER is down",
                                         "",
                                         "invalid password"};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        hl_error err = HL_ERROR_INIT;
        check_int(judged(others[i], &err), HL_ESERVER);
        check(err.text[0] != '\0');
    }
    check_int(hli_login_judge(&(struct hli_answer){.verdict = HLI_REPLIED}, "", NULL), 0);
}
