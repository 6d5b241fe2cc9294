/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Grants: what other clients write into this client's own channel, its mailbox. A grant says that a
 * release has written one of our fields as the next holder; a want, that somebody waits for what we
 * hold. They are read by the loop, or by a caller that waits for one.
 */
#ifndef HLI_LEASE_GRANT_H
#define HLI_LEASE_GRANT_H

#include "lease/turn.h"

/* Before the link is started; then listens, over every reconnect; and stops. */
void hli_grants_init(hl_client *client);
void hli_grants_listen(hl_client *client);
void hli_grants_stop_listening(hl_client *client);

/* A TAKE of a tenure that was granted meanwhile is answered. Name mutex. */
void hli_grant_crossed(struct hli_turn *turn, struct hli_tenure *tenure,
                       const struct hli_answer *answer);

#endif
