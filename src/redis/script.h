/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The Lua scripts as part of the library: text for SCRIPT LOAD and digest for EVALSHA. The list,
 * the bytes and the digests are made from lua/ at build time, so none can differ from another.
 */

#ifndef HLI_REDIS_SCRIPT_H
#define HLI_REDIS_SCRIPT_H

#include "redis/reply.h"
#include "redis/script_list.h"

#include <stddef.h>

typedef enum hli_script_id {
#define X(upper, lower) HLI_SCRIPT_##upper,
    HLI_SCRIPT_MAP(X)
#undef X
        HLI_SCRIPT_COUNT
} hli_script_id;

struct hli_script { /* immutable */
    const char *name;
    const unsigned char *text; /* not terminated */
    size_t length;
    char sha1[41]; /* lower-case hex, as Redis writes it */
};

/* In the generated source; others use hli_script_get(). */
extern const struct hli_script hli_script_table[HLI_SCRIPT_COUNT];

/* Borrowed, valid for ever. id is one of the enum's scripts. */
const struct hli_script *hli_script_get(hli_script_id id);

/* Is this a reply that the script can give? Pure. */
bool hli_script_may_answer(hli_script_id id, const struct hli_reply *reply);

/* May a caller that has read this answer tell it: that something was taken or given back, or is
 * busy? Whatever else a script answers is the loop's. Pure. */
bool hli_script_is_plain(hli_script_id id, const struct hli_reply *reply);

#endif
