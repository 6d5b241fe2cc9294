/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The lock's commands: from a tenure and numbers to the words of a script's call. */
#ifndef HLI_LEASE_COMMAND_H
#define HLI_LEASE_COMMAND_H

#include "lease/name.h"

/* Of a client, what its own channel's name begins with; its id follows. */
#define HLI_MAILBOX "hirelock:"

/* How long a grant stands for which nobody comes: four polls, so that who missed it finds it with
 * its next poll, long before it ends; or the lease that the watchdog keeps up, if that is shorter,
 * for a holder that dies with its claim shall not last longer than one that dies with its lease;
 * but two polls at least. */
int64_t hli_command_claim_ms(const hl_client *client);

/* lock_acquire of `count` levels, absolute; may stand in the queue when it is busy. Errors:
 * HL_ENOMEM. */
struct hli_taking {
    int64_t lease_ms;
    uint32_t count;
    bool queues;
};
int hli_command_acquire(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_taking *taking);

/* lock_release down to `count` levels, with at least this lease for what is left of them; for 0
 * levels the key goes to the next one, or rests for so long. Errors: HL_ENOMEM. */
struct hli_leaving {
    uint32_t count;
    int64_t lease_ms, rest_ms;
    bool is_courteous;
};
int hli_command_release(const struct hli_tenure *tenure, struct hli_op *op,
                        const struct hli_leaving *leaving);

/* lock_keep. Errors: HL_ENOMEM. */
int hli_command_keep(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms);

#endif
