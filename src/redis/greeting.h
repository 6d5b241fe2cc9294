/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The greeting: what a new connection says before it is used, all in one go. Its answers tell
 * whether the server can be used at all; the words that are not vital (a name in CLIENT LIST) may
 * be refused.
 */
#ifndef HLI_REDIS_GREETING_H
#define HLI_REDIS_GREETING_H

#include "redis/conn.h"
#include "redis/url.h"

enum { HLI_GREETING_WORDS = 8, HLI_RUN_ID_LENGTH = 40 };

struct hli_greeting_word {
    struct hli_op op;
    struct hli_greeting *greeting;
    void (*check)(struct hli_greeting *greeting, const struct hli_answer *answer);
};

/* Which connection it is, of which run of the server: ids begin at 1 again when a server starts, so
 * only both together name one. */
struct hli_greeting_past {
    int64_t id; /* CLIENT ID, 0 while unknown */
    char run_id[HLI_RUN_ID_LENGTH + 1];
};

struct hli_greeting { /* loop thread */
    struct hli_conn *conn;
    void (*done)(
        struct hli_greeting *greeting); /* runs once the last answer is there; see err.code */
    struct hli_greeting_word word[HLI_GREETING_WORDS];
    unsigned words, answers;
    struct hli_greeting_past past, now;
    hl_error err; /* the first thing that forbids using the server; code 0 when nothing does */
    hl_error
        hint; /* the last error that was forgiven: why the server may close the connection next */
};

struct hli_greeting_settings {
    const struct hli_url *url;
    const char *client_name;
    const struct hli_greeting_past *past; /* the connection that this one replaces: to be killed */
};

/* Says it all. False when the connection is not open or memory is out. */
bool hli_greeting_say(struct hli_greeting *greeting, struct hli_conn *conn,
                      const struct hli_greeting_settings *settings);

void hli_greeting_deinit(struct hli_greeting *greeting);

#endif
