/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The Lua scripts as part of the library: text for SCRIPT LOAD and digest for EVALSHA. The build
 * makes both from lua/, for each row of script_list.h.
 */

#ifndef HLI_REDIS_SCRIPT_H
#define HLI_REDIS_SCRIPT_H

#include "redis/reply.h"
#include "redis/script_list.h"

#include <stddef.h>

typedef enum hli_script_id {
#define X(name, ...) HLI_SCRIPT_##name,
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

/* In the generated source; other files use hli_script_get(). */
extern const struct hli_script hli_script_table[HLI_SCRIPT_COUNT];

/* Borrowed, valid for ever. id is one of the enum's scripts. */
const struct hli_script *hli_script_get(hli_script_id id);

/* True if the script can give this reply. Pure. */
bool hli_script_may_answer(hli_script_id id, const struct hli_reply *reply);

/* True if the script says by this reply that it gave nothing: busy (0) or gone (-1). Pure. */
bool hli_script_is_refusal(hli_script_id id, const struct hli_reply *reply);

/* True for a plain answer: acquired, released, or busy. A leader may deliver it itself; any other
 * answer is left to the loop. Pure. */
bool hli_script_is_plain(hli_script_id id, const struct hli_reply *reply);

#endif
