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

/* How long a queue stands to which nobody comes. */
int64_t hli_command_queue_ms(const hl_client *client);

/* A word of a command: a number as text, or a name that is derived from the tenure's. */
enum { HLI_NUMBER_SIZE = 24 };
struct hli_bytes hli_command_number(char text[HLI_NUMBER_SIZE], int64_t number);
struct hli_bytes hli_command_derived(const struct hli_tenure *tenure, const char *prefix,
                                     char text[HLI_CHANNEL_SIZE]);
struct hli_bytes hli_command_key(const struct hli_tenure *tenure);

/* lock_keep. Errors: HL_ENOMEM. */
int hli_command_keep(const struct hli_tenure *tenure, struct hli_op *op, int64_t lease_ms);

#endif
