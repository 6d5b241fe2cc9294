/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Tags: the holder of a lock, described for people: host, process, thread, since when. With
 * HL_CLIENT_HOLDER_INFO a hold that lasts a moment writes its tag beside the lock, and a busy
 * answer brings the holder's.
 *
 * A tag names its field, and so counts for its tenure only. Within a tenure the lock goes from
 * owner to owner without a request, so a tenure that has shown a tag is not kept: its release goes
 * to the server. That costs nothing, because by then the server's word that a pass needs is too
 * old.
 */
#ifndef HLI_LEASE_HOLD_TAG_H
#define HLI_LEASE_HOLD_TAG_H

#include "lease/state/waiters.h"

enum { HLI_TAG_HOST = 64 }; /* bytes of a host's name, the same */

struct hli_tag {
    char thread[HLI_TAG_THREAD];
    hli_ns shows_at; /* when it is to be shown next; 0: not planned */
    bool is_shown;   /* it may stand in Redis */
};

/* The client's half, for hl_client.self: "pid host". */
void hli_tag_write_self(char *text, size_t size);

/* Are holds of this name tagged? */
bool hli_tag_is_wanted(const struct hli_name *name);

/* Do busy answers bring a tag, of a holder of this kind or of its sibling? */
bool hli_tag_is_asked(const struct hli_name *name);

/* If so: declares the tag's key, of a request for a cluster (command.h); adds it as the next word.
 */
void hli_tag_declare(const struct hli_name *name, struct hli_args *args);
void hli_tag_key(const struct hli_name *name, struct hli_args *args);

/* The calling thread's name. */
void hli_tag_write_thread(char text[HLI_TAG_THREAD]);

/* The current tenure's hold begins, for this thread. Without a tag when memory is out, because it
 * is a display only. Name mutex. */
void hli_tag_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                   const char thread[HLI_TAG_THREAD]);

/* When the watchdog is to visit for the tag; or HLI_NEVER. Name mutex, as all below. */
hli_ns hli_tag_due(const struct hli_tenure *tenure);
void hli_tag_plan(struct hli_turn *turn); /* writes it when it is due */
/* False: the key is gone. */
bool hli_tag_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                      const struct hli_answer *answer);
bool hli_tag_is_shown(const struct hli_tenure *tenure);

/* Adds what a tag says to `info`, at this time of the server in milliseconds (0: not known). Adds
 * nothing when it is not that holder's, or no tag. */
void hli_tag_read(const char *text, const char *holder, int64_t server_ms, hl_lock_info *info);
/* The same for a hold of this process. */
void hli_tag_read_own(const struct hli_tenure *tenure, hli_ns now, hl_lock_info *info);

#endif
