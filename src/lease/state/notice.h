/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Notices: how a tenure reports events of its hold to the event callbacks. */
#ifndef HLI_LEASE_STATE_NOTICE_H
#define HLI_LEASE_STATE_NOTICE_H

#include "lease/state/turn.h"

/* Writes the notice and queues it at the turn's end, if there is an event callback. A notice that
 * is still queued is overwritten: the latest counts. */
void hli_notice_warning(struct hli_turn *turn, struct hli_tenure *tenure, hl_event_kind kind);
void hli_notice_loss(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason);

/* Reports that a posted release failed; to the client's on_event alone, because the release call
 * has returned and the hold's callback may be gone. */
void hli_notice_release(struct hli_turn *turn, struct hli_tenure *tenure, const char *reason);

#endif
