/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a credentials callback says: a login, or why it has none. What it got wrong is the reason of
 * the attempt, too, since it may not look at a result. */
#include "base/error.h"
#include "redis/logins.h"

#include <string.h>

static const int64_t credentials_max_ms = INT64_C(100000000000);

/* NULL if the server can take them. */
static const char *credentials_refuse(const char *username, const char *password, int64_t valid_ms)
{
    if (username && !password)
        return "a user without a password";
    if (password && !password[0])
        return "an empty password";
    if (password && strnlen(password, HLI_LOGIN_LIMIT + 1) > HLI_LOGIN_LIMIT)
        return "a password longer than 16,384 bytes";
    if (username && strnlen(username, HLI_LOGIN_LIMIT + 1) > HLI_LOGIN_LIMIT)
        return "a user longer than 16,384 bytes";
    if (valid_ms < 0 || valid_ms > credentials_max_ms)
        return "a valid_ms that is not from 0 to 10^11 ms";
    return NULL;
}

static int credentials_fail(hl_credentials *credentials, int code, const char *what)
{
    hli_login_deinit(&credentials->login);
    hli_error_set(&credentials->err, code == HL_EINVAL ? HL_ECONN : code,
                  "the credentials callback gave %s", what);
    return hli_fail(NULL, code, "%s", what);
}

int hl_credentials_set(hl_credentials *credentials, const char *username, const char *password,
                       int64_t valid_ms)
{
    if (!credentials)
        return hli_fail(NULL, HL_EINVAL, "the credentials are NULL");
    const char *wrong = credentials_refuse(username, password, valid_ms);
    if (wrong)
        return credentials_fail(credentials, HL_EINVAL, wrong);
    struct hli_login *login = &credentials->login;
    hli_login_deinit(login);
    if (hli_login_set(login, username, password) < 0)
        return credentials_fail(credentials, HL_ENOMEM, "a login: out of memory");
    login->given_at = hli_now();
    login->expires_at = valid_ms == 0 ? 0 : hli_after_ms(login->given_at, valid_ms);
    credentials->err.code = HL_OK;
    return 0;
}

int hl_credentials_fail(hl_credentials *credentials, const char *reason)
{
    char text[160];

    if (!credentials || !reason)
        return hli_fail(NULL, HL_EINVAL, "the credentials or the reason is NULL");
    hli_login_deinit(&credentials->login);
    hli_error_set(&credentials->err, HL_ECONN, "the credentials callback failed: %s",
                  hli_error_escape(text, sizeof(text), reason, strlen(reason)));
    return 0;
}
