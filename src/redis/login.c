/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Logins: their memory, their command, their times. */
#include "redis/login.h"

#include "base/error.h"
#include "base/secret.h"

#include <hirelock/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int login_replace(char **text, const char *by)
{
    if (!by)
        return 0;
    hli_secret_free(*text);
    *text = hli_secret_copy(by);
    return *text ? 0 : HL_ENOMEM;
}

int hli_login_set(struct hli_login *login, const char *username, const char *password)
{
    int rc = login_replace(&login->username, username);

    return rc == 0 ? login_replace(&login->password, password) : rc;
}

void hli_login_deinit(struct hli_login *login)
{
    hli_secret_free(login->username);
    hli_secret_free(login->password);
    *login = (struct hli_login){0};
}

static char *login_put(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    return to + length;
}

/* "$6\r\nsecret\r\n" */
static char *login_put_word(char *to, const char *word)
{
    to += sprintf(to, "$%zu\r\n", strlen(word));
    to = login_put(to, word, strlen(word));
    return login_put(to, "\r\n", 2);
}

/* hli_op_texts() would leave a copy on the stack, or in memory that is given back unwiped. */
int hli_login_write(const struct hli_login *login, struct hli_op *op)
{
    static const char head[] = "*3\r\n$4\r\nAUTH\r\n";
    const size_t frame = 32; /* of a word */
    size_t size = sizeof(head) + 2 * frame + strlen(login->password) +
                  (login->username ? strlen(login->username) : 0);
    char *bytes = malloc(size), *to = bytes;

    if (!bytes)
        return HL_ENOMEM;
    to = login_put(to, head, sizeof(head) - 1);
    bytes[1] = login->username ? '3' : '2';
    if (login->username)
        to = login_put_word(to, login->username);
    to = login_put_word(to, login->password);
    hli_op_wipe(op);
    op->bytes = bytes;
    op->length = (size_t)(to - bytes);
    op->script = -1;
    return 0;
}

int hli_login_judge(const struct hli_answer *answer, const char *what, hl_error *err)
{
    /* The first answer to any command of a client too many. */
    static const char full[] = "ERR max number of clients";

    if (answer->verdict == HLI_REPLIED)
        return 0;
    if (hli_answer_is(answer, full))
        return hli_fail(err, HL_ESERVER, "%s", answer->text);
    int length = (int)strcspn(answer->text, " ");
    if (hli_answer_denies_login(answer))
        return hli_fail(err, HL_EDENIED, "%s (%.*s)", what, length, answer->text);
    return hli_fail(err, HL_ESERVER, "the login was neither accepted nor denied (%.*s)", length,
                    answer->text);
}

hli_ns hli_login_renew_at(const struct hli_login *login, uint64_t random)
{
    if (login->expires_at == 0)
        return HLI_NEVER;
    hli_ns life = login->expires_at - login->given_at;
    hli_ns early = life / 5 + (hli_ns)(random % (uint64_t)(life / 10 + 1));
    return hli_later(login->expires_at - early, login->given_at + HLI_MS(1000));
}

hli_ns hli_login_retry_at(hli_ns expires_at, hli_ns now)
{
    hli_ns quarter = (expires_at - now) / 4;

    return now + hli_earlier(hli_later(quarter, HLI_MS(1000)), HLI_MS(60000));
}
