/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The inbox: what comes in by a connection. Whoever has the reader's role (reader.h), the loop or a
 * caller that leads, receives here; each reply completes the oldest request in flight, and a
 * message goes to the connection's events.
 */
#ifndef HLI_REDIS_INBOX_H
#define HLI_REDIS_INBOX_H

#include "redis/conn.h"

/* The loop reads now, whoever led. True when there was something, and there may be more. */
bool hli_inbox_read(struct hli_conn *conn);

/* The loop's: the socket is readable; a leader has left something to it, and the role with it; and
 * nobody may have led for a while, so that it is to be armed. */
void hli_inbox_on_readable(int fd, short what, void *conn);
void hli_inbox_read_on(void *conn);
void hli_inbox_look_at_rest(void *conn);

/* A leader's (lead.h): tells a reply if it is plain, else false; and leaves, with the rest for the
 * loop to read on, or for whoever comes. */
bool hli_inbox_tell_plain(struct hli_conn *conn, const struct hli_reply *reply);
void hli_inbox_leave(struct hli_conn *conn, bool to_loop);
bool hli_inbox_is_idle(struct hli_conn *conn); /* nothing is in flight */

/* Is it led for messages? And takes the role for that, if it is nobody's. */
bool hli_inbox_is_led_for_messages(const struct hli_conn *conn);
bool hli_inbox_try_lead(struct hli_conn *conn);

#endif
