/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Notices: how a tenure tells event callbacks what became of its hold. */
#ifndef HLI_LEASE_NOTICE_H
#define HLI_LEASE_NOTICE_H

#include "lease/turn.h"

/* Once, for a new tenure. */
void hli_notice_init(struct hli_tenure *tenure);

/* Writes the notice; it is queued at the turn's end, if anybody listens. One that still waits in
 * the queue is told anew instead: the latest word counts. */
void hli_notice_warning(struct hli_turn *turn, struct hli_tenure *tenure, hl_event_kind kind);
void hli_notice_loss(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason);

/* A posted release did not end well; for the client's on_event alone, for the hold's is of a call
 * that has returned. */
void hli_notice_release(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason);

/* At the turn's end. */
void hli_notice_post(struct hli_notice *notice);

#endif
