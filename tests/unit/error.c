/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Result codes in words, and the sentence that goes with them. */

#include "base/error.h"

#include "support/test.h"

#include <hirelock/client.h>

#include <string.h>

enum class { OUTCOME, FAULT };

static const struct code {
    int code, value;
    const char *name, *text;
    enum class class;
} codes[] = {
#define X(name, value, text, class) {HL_##name, value, "HL_" #name, text, class},
    HL_ERROR_MAP(X)
#undef X
};
enum { CODES = sizeof codes / sizeof codes[0] };

Test(error, has_a_name_and_a_text_and_a_class_for_every_code)
{
    for (int i = 0; i < CODES; i++) {
        check_int(codes[i].code, codes[i].value);
        check(codes[i].code < 0);
        check_str(hl_err_name(codes[i].code), codes[i].name);
        check_str(hl_err_text(codes[i].code), codes[i].text);
        check_int(hl_err_is_outcome(codes[i].code), codes[i].class == OUTCOME);
        for (int j = 0; j < i; j++)
            check(codes[i].code != codes[j].code);
    }
}

Test(error, has_its_words_beside_the_words_of_events_and_levels)
{
    check_str(hl_event_name(HL_EVENT_JEOPARDY), "jeopardy");
    check_str(hl_event_name(HL_EVENT_RELEASE_FAILED), "release failed");
    check_str(hl_event_name(HL_EVENT_MASTER_CHANGED), "master changed");
    check_str(hl_event_name(HL_EVENT_MASTER_ISOLATED), "master isolated");
    check_str(hl_event_name(HL_EVENT_MASTER_CONFIRMED), "master confirmed");
    check_str(hl_event_name(HL_EVENT_CHANNELS_DENIED), "channels denied");
    check_str(hl_event_name((hl_event_kind)99), "unknown event");
    check_str(hl_log_level_name(HL_LOG_ERROR), "error");
    check_str(hl_log_level_name(HL_LOG_DEBUG), "debug");
    check_str(hl_log_level_name((hl_log_level)0), "unknown level");
    const hl_stats stats = HL_STATS_INIT;
    check_int(stats.size, sizeof stats);
    check_int(stats.retained, 0);
}

Test(error, knows_success_and_what_it_does_not_know)
{
    check_str(hl_err_name(HL_OK), "HL_OK");
    check_str(hl_err_text(HL_OK), "success");
    check(!hl_err_is_outcome(HL_OK) && !hl_err_is_transient(HL_OK));
    check_str(hl_err_name(-1000), "HL_E?");
    check_str(hl_err_text(17), "unknown code");
    check(!hl_err_is_outcome(-1000) && !hl_err_is_transient(-1000));
}

Test(error, says_which_calls_may_be_repeated)
{
    static const int transient[] = {HL_EBUSY, HL_ETIMEDOUT, HL_ENOMEM,
                                    HL_ECONN, HL_ESERVER,   HL_EREPLICAS};
    int count = 0;
    for (int i = 0; i < CODES; i++)
        count += hl_err_is_transient(codes[i].code);
    check_int(count, sizeof transient / sizeof transient[0]);
    for (size_t i = 0; i < sizeof transient / sizeof transient[0]; i++)
        check(hl_err_is_transient(transient[i]));
}

Test(error, says_which_code_leaves_the_outcome_in_doubt)
{
    for (int i = 0; i < CODES; i++)
        check_int(hl_err_is_in_doubt(codes[i].code), codes[i].code == HL_EINDOUBT);
    check(!hl_err_is_in_doubt(HL_OK) && !hl_err_is_in_doubt(-1000));
}

Test(error, fills_what_it_is_given_and_returns_the_code)
{
    hl_error err = HL_ERROR_INIT;
    check_int(hli_fail(NULL, HL_EBUSY, "nobody reads this"), HL_EBUSY);
    check_int(hli_fail(&err, HL_ECONN, "port %d", 6379), HL_ECONN);
    check_int(err.code, HL_ECONN);
    check_str(err.text, "port 6379");
}

/* Later versions make fields of the reserved bytes. */
Test(error, writes_all_of_a_struct_that_was_not_initialised)
{
    static const unsigned char zero[sizeof(hl_error)];
    hl_error err;
    memset(&err, 0xa5, sizeof err);
    hli_fail(&err, HL_ECONN, "no server");
    check(memcmp(err.reserved, zero, sizeof err.reserved) == 0);
    check(memcmp(err.busy_reserved, zero, sizeof err.busy_reserved) == 0);
    check(err.busy.size == sizeof err.busy && !err.busy.locked && err.busy.available == 0);
}

Test(error, cuts_what_is_too_long)
{
    hl_error err = HL_ERROR_INIT;
    char long_text[1000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    hli_fail(&err, HL_EINVAL, "%s", long_text);
    check_int(strlen(err.text), sizeof err.text - 1);
}

Test(error, shows_bytes_as_printable_text)
{
    char text[16];
    check_str(hli_error_escape(text, sizeof text, "a'b", 3), "a\\x27b");
    check_str(hli_error_escape(text, sizeof text, "\0\n\\", 3), "\\x00\\x0a\\x5c");
    check_str(hli_error_escape(text, sizeof text, "\xff", 1), "\\xff");
    check_str(hli_error_escape(text, sizeof text, "", 0), "");
    check_str(hli_error_escape(text, sizeof text, "0123456789abcdefgh", 18), "0123456789ab");
}
