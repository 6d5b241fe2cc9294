/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What is wrong with a server, for locks. A check looks at the facts only, and does no I/O. */
#ifndef CLI_CHECKS_H
#define CLI_CHECKS_H

#include "cli/facts.h"
#include "cli/pulse.h"

enum cli_state {
    CLI_STATE_OK,
    CLI_STATE_NOTE,    /* good to know */
    CLI_STATE_UNKNOWN, /* the server does not tell */
    CLI_STATE_WARNING, /* locks work, and may fail some day */
    CLI_STATE_PROBLEM, /* locks fail, or two owners may hold one */
};

struct cli_finding {
    const char *check;
    enum cli_state state;
    char says[256]; /* what is so */
    char fix[256];  /* what to do; "" if nothing */
};

struct cli_checkup {
    struct cli_facts facts;
    struct cli_pulse pulse; /* of PINGs */
    bool is_encrypted;      /* the connection, by TLS */
    bool is_local;          /* it does not leave this machine */
};

/* Calls `tell` for each check, in their order. */
void cli_checks_run(struct cli_checkup *checkup,
                    void (*tell)(const struct cli_finding *finding, void *arg), void *arg);

const char *cli_state_name(enum cli_state state);

#endif
