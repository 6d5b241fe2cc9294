/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Retiming: the lease of a hold is set anew, sooner or later than it would end. While the request
 * is under way it is not known which of both times counts on the server: so the shorter one does
 * here. No renewal is begun meanwhile; for one that was begun before, the request has to wait.
 */
#ifndef HLI_LEASE_RETIME_H
#define HLI_LEASE_RETIME_H

#include "lease/turn.h"

struct hli_retiming {
    struct hli_tenure *tenure; /* counted, from begin to end */
    int64_t lease_ms;          /* what the server is asked for */
    bool is_watched;           /* from then on */
    bool was_watched;
    hli_ns ended; /* as hold.ends */
};

/* Before the request: lease_ms is 0 for a hold that the watchdog is to renew. Name mutex. Errors:
 * HL_EINVAL: another is under way; HL_ELOST, HL_ENOTOWNER: it is not held. */
int hli_retime_begin(struct hli_turn *turn, struct hli_tenure *tenure, int64_t lease_ms,
                     struct hli_retiming *ret);

/* The request has ended with this code; with HL_OK, it was sent at `sent_at`. Without a mutex. */
void hli_retime_end(struct hli_retiming *retiming, int code, hli_ns sent_at);

#endif
