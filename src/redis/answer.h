/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* An answer: the outcome of a request, sorted by what the sender can do about it. Pure. */
#ifndef HLI_REDIS_ANSWER_H
#define HLI_REDIS_ANSWER_H

#include "redis/reply.h"

#include <hirelock/client.h>

enum hli_verdict {
    HLI_REPLIED, /* the request ran; `reply` is set */
    HLI_BOUNCED, /* it did not run (NOSCRIPT, MOVED, ASK, or its sender did not want it any more);
                    the sender may decide anew and send at once */
    HLI_REFUSED, /* the server cannot run it now (LOADING, OOM, READONLY, NOREPLICAS ...) */
    HLI_FAILED,  /* the server never will (NOPERM, WRONGTYPE), or its answer is malformed */
    HLI_UNKNOWN, /* in doubt: written, and the connection was lost; it may have run, or still may */
    HLI_UNSENT,  /* no byte of it was written */
};

struct hli_answer {
    enum hli_verdict verdict;
    const struct hli_reply *reply; /* borrowed; of HLI_REPLIED only */
    int code;                      /* an HL_E code unless HLI_REPLIED */
    const char *text;              /* borrowed, the reason unless HLI_REPLIED */
    /* HLI_REPLIED, of a request that replicas confirm: how many have what it wrote. If the server
     * refused to wait for them, code and text say why. */
    unsigned replicas;
    bool link_has_failed; /* HLI_UNSENT: the last attempt to connect; the text says why */
};

/* Sorts a reply. */
struct hli_answer hli_answer_from(const struct hli_reply *reply);

/* Cuts an error text down to its code word, and what it denies, if it repeats the secret, or the
 * beginning of a long secret: some peers quote the command that they do not understand. secret may
 * be NULL. */
void hli_answer_hide(struct hli_answer *answer, const char *secret);

/* Of the answer to AUTH: is the error text one that means no, as that of Redis 2.8 and later,
 * Valkey, and proxies which judge logins themselves? Any other error passes. */
bool hli_answer_denies_login(const struct hli_answer *answer);

/* Does the error text begin with this code word? */
bool hli_answer_is(const struct hli_answer *answer, const char *word);

/* Does it begin with a word that says for certain what has happened? Another error of a command may
 * be of any kind. */
bool hli_answer_is_known(const struct hli_answer *answer);

/* Why a call failed that ended with this code and text: for HL_ESERVER and HL_EINDOUBT by the
 * server's word, if the text has one. */
hl_reason hli_answer_reason(int code, const char *text);

/* What the user may do about an error with this text, to stand behind it; "": the text says so. */
const char *hli_answer_advice(const char *text);

#endif
