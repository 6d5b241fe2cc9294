/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/checkup.h"

#include <hirelock/command.h>
#include <string.h>

/* The first failure ends it: the next ones would wait as long. */
static void checkup_ping(hl_client *client, const char *node, unsigned pings,
                         struct cli_pulse *pulse)
{
    static const char *const words[] = {"PING"};
    hl_command command = HL_COMMAND_INIT;
    int rc = 0;

    command.flags = HL_COMMAND_READS;
    command.words = words;
    command.word_count = 1;
    command.node = node;
    for (unsigned i = 0; i < pings && rc == 0; i++) {
        hl_reply *reply = NULL;
        int64_t began = cli_pulse_now();
        rc = hl_client_command(client, &command, &reply, NULL);
        if (rc == 0)
            cli_pulse_add(pulse, cli_pulse_now() - began);
        hl_reply_free(reply);
    }
}

/* rediss, rediss-sentinel, rediss-cluster, valkeys */
static bool checkup_is_encrypted(const char *url)
{
    return strncmp(url, "rediss", 6) == 0 || strncmp(url, "valkeys", 7) == 0;
}

/* A path, or a loopback address (RFC 5735, RFC 4291). */
static bool checkup_is_local(const char *address)
{
    static const char *const locals[] = {"/", "127.", "[::1]", "::1", "localhost:"};

    for (size_t i = 0; i < sizeof(locals) / sizeof(locals[0]); i++)
        if (strncmp(address, locals[i], strlen(locals[i])) == 0)
            return true;
    return false;
}

void cli_checkup_gather(hl_client *client, const char *url, const char *node,
                        const struct cli_checkup_effort *effort, struct cli_checkup *ret_checkup)
{
    *ret_checkup = (struct cli_checkup){.is_encrypted = checkup_is_encrypted(url),
                                        .is_local = checkup_is_local(node)};
    checkup_ping(client, node, effort->pings, &ret_checkup->pulse);
    cli_facts_gather(client, node, effort->span_ms, &ret_checkup->facts);
}

void cli_checkup_free(struct cli_checkup *checkup)
{
    cli_facts_free(&checkup->facts);
    cli_pulse_free(&checkup->pulse);
}
