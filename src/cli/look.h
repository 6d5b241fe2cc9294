/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A look at one name: what the server's data say of it at one moment. A script that writes nothing
 * reads the key and those beside it (docs/redisson.md). What each kind of lock writes is the same
 * hash, so some kinds look alike: docs of `hirelock list` say which.
 */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include "cli/server.h"

#include <hirelock/command.h>
#include <json-c/json.h>

/* A name as it is in Redis, of any bytes, behind the prefix of --prefix. */
struct cli_name {
    const char *bytes;
    size_t length;
    size_t prefix; /* the first bytes, which are not shown */
};

enum { CLI_LOOK_WORDS = 10, CLI_LOOK_KEY = 1100 };

/* The words of a look's command; its texts are in itself, and so it must not be moved. */
struct cli_look {
    hl_command command;
    const char *words[CLI_LOOK_WORDS];
    size_t lengths[CLI_LOOK_WORDS];
    char keys[CLI_LOOK_WORDS][CLI_LOOK_KEY];
};

extern const char cli_look_script[];

/* A key that is derived from a name, as Redisson does it: "first{name}last", or without braces of
 * its own if the name has some. Returns its length; 0 if it is longer than any lock's. */
size_t cli_name_derive(const struct cli_name *name, const char *first, const char *last,
                       char key[CLI_LOOK_KEY]);

/* Makes the command for this name, which is borrowed. sha: of the loaded script; NULL: the command
 * brings the script. False: no lock has such a long name. */
bool cli_look_begin(struct cli_look *look, const struct cli_name *name, const char *sha);

/* What a look's reply says, as an object with the keys that list.c and inspect.c print; NULL if the
 * name is no lock. Owned by the caller. */
json_object *cli_look_read(const struct cli_name *name, const hl_reply *reply);

/* A whole look; *ret_lock is NULL when there is no key. Returns a code of the library; HL_EINVAL:
 * the key is no lock. */
int cli_look(hl_client *client, const struct cli_name *name, json_object **ret_lock, hl_error *err);

/* The same, with the server's time, in UTC. */
enum { CLI_TIME = 64 };
int cli_look_at(hl_client *client, const struct cli_name *name, json_object **ret_lock,
                char time[CLI_TIME], hl_error *err);

/* The number or the text at this place of an array; 0 or NULL if there is none. */
long long cli_reply_number(const hl_reply *reply, size_t at);
const hl_reply *cli_reply_text(const hl_reply *reply, size_t at);

/* Adds what a holder's tag says: host, pid, owner_number, thread, held_ms. */
void cli_look_add_tag(json_object *lock, const hl_reply *tag, const hl_reply *field,
                      long long now_ms);

/* The name with its prefix, from words of the command line. Owned by the caller; NULL when memory
 * is out. */
char *cli_name_make(const struct cli_server *server, const char *word, struct cli_name *ret_name);

#endif
