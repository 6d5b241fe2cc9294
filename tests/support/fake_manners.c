/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Tables of fixed answers, one by command and one by script, and a function for each command whose
 * answer depends on its arguments. */
#include "fake_manners.h"

#include <string.h>

#include "redis/script.h"
#include "sha1.h"

static const struct {
    const char *words, *answer;
} fake_fixed[] = {
    {"AUTH", "+OK\r\n"},
    {"SELECT", "+OK\r\n"},
    {"CLIENT KILL", ":0\r\n"},
    {"CLIENT", "+OK\r\n"},
    {"ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"},
    {"INFO", "$22\r\nredis_version:7.0.15\r\n\r\n"},
    {"CONFIG GET", "*0\r\n"},
    {"SCRIPT EXISTS", "*1\r\n:1\r\n"},
    {"PUBLISH", ":0\r\n"},
    {"QUIT", "+OK\r\n"},
};

/* Free until now and held from now on; gone from now on, and no client waits for it; without a
 * holder. */
static const char *const fake_scripts[HLI_SCRIPT_COUNT] = {
    [HLI_SCRIPT_LOCK_ACQUIRE] = "*2\r\n:1\r\n:1\r\n",
    [HLI_SCRIPT_LOCK_RELEASE] = "*3\r\n:1\r\n$0\r\n\r\n:0\r\n",
    [HLI_SCRIPT_LOCK_KEEP] = "*2\r\n:1\r\n:0\r\n",
    [HLI_SCRIPT_LOCK_RENEW] = "*0\r\n",
    [HLI_SCRIPT_LOCK_INSPECT] = "*4\r\n:0\r\n:-2\r\n$0\r\n\r\n$1\r\n0\r\n",
};

static void fake_manners_acknowledge(const struct resp_command *command, struct fake_reply *reply,
                                     const char *kind, int *channels)
{
    int step = strcmp(kind, "subscribe") == 0 ? 1 : -1;
    for (int i = 1; i < command->argc; i++) {
        *channels += step;
        fake_reply_text(reply, "*3\r\n");
        fake_reply_bulk(reply, kind, strlen(kind));
        fake_reply_bulk(reply, command->argv[i], command->length[i]);
        fake_reply_format(reply, ":%d\r\n", *channels);
    }
}

static void fake_manners_load(const struct resp_command *command, struct fake_reply *reply)
{
    char hex[41];
    sha1_hex(command->argv[2], command->length[2], hex);
    fake_reply_bulk(reply, hex, 40);
}

static void fake_manners_run(const struct resp_command *command, struct fake_reply *reply)
{
    const char *answer = NULL;
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++)
        if (resp_command_arg_is(command, 1, hli_script_get((hli_script_id)id)->sha1))
            answer = fake_scripts[id];
    fake_reply_text(reply, answer ? answer : "*1\r\n:1\r\n");
}

static void fake_manners_fixed(const struct resp_command *command, struct fake_reply *reply)
{
    for (size_t i = 0; i < sizeof fake_fixed / sizeof fake_fixed[0]; i++)
        if (resp_command_begins(command, fake_fixed[i].words)) {
            fake_reply_text(reply, fake_fixed[i].answer);
            return;
        }
    fake_reply_text(reply, "-ERR unknown command\r\n");
}

void fake_manners_answer(const struct resp_command *command, struct fake_reply *reply, int number,
                         int *channels)
{
    if (resp_command_begins(command, "PING"))
        fake_reply_text(reply, *channels > 0 ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
    else if (resp_command_begins(command, "CLIENT ID"))
        fake_reply_format(reply, ":%d\r\n", number);
    else if (resp_command_begins(command, "SUBSCRIBE"))
        fake_manners_acknowledge(command, reply, "subscribe", channels);
    else if (resp_command_begins(command, "UNSUBSCRIBE"))
        fake_manners_acknowledge(command, reply, "unsubscribe", channels);
    else if (resp_command_begins(command, "SCRIPT LOAD") && command->argc == 3)
        fake_manners_load(command, reply);
    else if (resp_command_begins(command, "EVALSHA"))
        fake_manners_run(command, reply);
    else
        fake_manners_fixed(command, reply);
}
