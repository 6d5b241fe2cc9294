/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Grants: the messages of other clients in this client's mailbox. A grant says that a release has
 * written one of our fields as the next holder; a want, that another client waits for a lock that
 * we hold; a look, that a force release may have taken one from us. The loop reads them, or a
 * caller that waits for a grant.
 */
#ifndef HLI_LEASE_ACQUIRE_GRANT_H
#define HLI_LEASE_ACQUIRE_GRANT_H

#include "lease/state/turn.h"

/* init: before the link is started. listen: subscribes to the mailbox, also after each reconnect.
 * stop_listening: ends that. */
void hli_grants_init(hl_client *client, const struct hli_kind *kind);
void hli_grants_listen(hl_client *client);
void hli_grants_stop_listening(hl_client *client);

/* Was the granted hold not over when the ACQUIRE ran that got this answer, or did the ACQUIRE not
 * run? Name mutex. */
bool hli_grant_stood(const struct hli_tenure *tenure, const struct hli_answer *answer);

/* Handles the answer to an ACQUIRE of a tenure that was granted meanwhile. False: the grant ran out
 * before. Name mutex. */
bool hli_grant_crossed(struct hli_tenure *tenure, const struct hli_answer *answer);

#endif
