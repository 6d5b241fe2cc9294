/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the tests in which a server denies commands: its user "locker", with the least
 * rights that locks need, and the log of that user's denials.
 */
#ifndef HL_TEST_ACL_KIT_H
#define HL_TEST_ACL_KIT_H

#include "server_fault.h"

/* "user locker on >pw KEYS CHANNELS COMMANDS", a constant */
static inline void acl_up(const char *locker)
{
    server_up_with(&(struct redis_options){.config = locker});
}

/* A client of that user; events may be NULL. */
static inline hl_client_options acl_options(struct events *events)
{
    hl_client_options options = fault_options(events);
    options.username = "locker";
    options.password = "pw";
    return options;
}

/* PING, ROLE, INFO and CLIENT make a better client (a replica is known at the door, an old
 * connection is killed) and may be denied. */
static inline bool acl_may_be_denied(const char *command)
{
    static const char *const optional[] = {"ping", "role", "info", "client", "pexpireat", "select"};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
        if (strncmp(command, optional[i], strlen(optional[i])) == 0)
            return true;
    return false;
}

/* Checks that only those were denied, and channels with this prefix; NULL: no channel. */
static inline void acl_check_log(const char *channels)
{
    redisReply *log = redis_command(server, "ACL LOG 100");
    check(log && log->type == REDIS_REPLY_ARRAY && log->elements > 0);
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i]; /* count n reason r context c object o ... */
        const char *reason = entry->element[3]->str, *object = entry->element[7]->str;
        if (channels && strcmp(reason, "channel") == 0)
            check_msg(strncmp(object, channels, strlen(channels)) == 0, "%s is denied", object);
        else
            check_msg(strcmp(reason, "command") == 0 && acl_may_be_denied(object),
                      "%s %s is denied", reason, object);
    }
    freeReplyObject(log);
}

#endif
