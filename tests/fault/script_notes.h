/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The fixture of the tests of the "once" scripts, those of semaphores and latches: the client A
 * sends commands with ids, and each command's note stands until it is settled.
 */
#ifndef HL_TEST_SCRIPT_NOTES_H
#define HL_TEST_SCRIPT_NOTES_H

#include "script_raw.h"

#define NOTES "hirelock_note:{n}:A:"

/* The command of this id; out is where it tells what it did, "channel PUBLISH", or "". */
static inline const char *once_run(hli_script_id script, const char *id, const char *out,
                                   const char *rest)
{
    char words[256];
    snprintf(words, sizeof words, NOTES " %s 60000 %s %s", id, out, rest);
    return run_script(script, "n", words);
}

/* The notes that stand are this one, of this command; or none, "" and "". */
static inline void check_note(const char *id, const char *what)
{
    char key[64] = "";
    if (id[0])
        snprintf(key, sizeof key, NOTES "%s", id);
    check_str(redis_str(server, "KEYS hirelock_note:*"), key);
    if (!id[0])
        return;
    check_str(redis_str(server, "GET %s", key), what);
    int64_t left = redis_int(server, "PTTL %s", key);
    check(left > 30000 && left <= 60000);
}

#endif
