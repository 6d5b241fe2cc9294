/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* An answer: what became of a request, sorted by what the asker can do about it. Pure. */
#ifndef HLI_REDIS_ANSWER_H
#define HLI_REDIS_ANSWER_H

#include "redis/reply.h"

#include <hirelock/error.h>

enum hli_verdict {
    HLI_REPLIED, /* it ran; the reply is there */
    HLI_BOUNCED, /* it did not run, and may be asked again at once (NOSCRIPT): a new decision of who
                    asked */
    HLI_REFUSED, /* the server cannot now, and may later (LOADING, OOM, READONLY, NOREPLICAS ...) */
    HLI_FAILED,  /* the server will not (NOPERM, WRONGTYPE): code is HL_EDENIED or HL_ESERVER */
    HLI_UNKNOWN, /* it was written and the connection was lost: it may have run, or may still */
    HLI_UNSENT,  /* nothing was written */
};

struct hli_answer {
    enum hli_verdict verdict;
    const struct hli_reply *reply; /* borrowed, of HLI_REPLIED */
    int code;                      /* an HL_E code unless HLI_REPLIED */
    const char *text;              /* borrowed, the reason unless HLI_REPLIED */
};

/* Sorts a reply. */
struct hli_answer hli_answer_from(const struct hli_reply *reply);

/* An error text that repeats the secret, or the beginning of a long one, is cut down to its code
 * word: some peers quote what they do not understand. secret may be NULL. */
void hli_answer_hide(struct hli_answer *answer, const char *secret);

/* Does an error text begin with this code word? */
bool hli_answer_is(const struct hli_answer *answer, const char *word);

#endif
