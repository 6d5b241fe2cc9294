/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Tags: who holds a lock, in words for people: host, process, thread, since when. With
 * HL_CLIENT_TAGS they are written beside a lock whose hold lasts a moment, and asked for.
 *
 * A tag names its field, and so counts for its tenure only. Within a tenure the lock goes from
 * owner to owner without a request, so a tenure that has shown a tag is not kept: its release goes
 * to the server. That costs nothing, for by the time a tag is shown the word that a pass needs is
 * too old.
 */
#ifndef HLI_LEASE_TAG_H
#define HLI_LEASE_TAG_H

#include "lease/turn.h"

enum { HLI_TAG_HOST = 64, HLI_TAG_THREAD = 16 }; /* bytes, with a NUL, as in hl_lock_info */

struct hli_tag {
    char thread[HLI_TAG_THREAD];
    hli_ns shows_at; /* when it is to be shown next; 0: not planned */
    bool is_shown;   /* it may stand in Redis */
};

struct hli_holder {
    char host[HLI_TAG_HOST], thread[HLI_TAG_THREAD];
    int64_t pid, held_ms;
};

/* The client's half, for hl_client.self: "pid host". */
void hli_tag_write_self(char *text, size_t size);

/* Are holds of this name tagged? */
bool hli_tag_is_wanted(const struct hli_name *name);

/* The key in which the holder tells who it is, be it of this kind or of the sister's; "" when it is
 * not to be asked for. */
struct hli_bytes hli_tag_key(const struct hli_name *name, char text[HLI_CHANNEL_SIZE]);

/* Of the calling thread. NULL when tags are not wanted, or memory is out: it is a display only. */
struct hli_tag *hli_tag_new(const struct hli_name *name);
/* Of the same thread, for what it gets next; NULL of a NULL. */
struct hli_tag *hli_tag_again(const struct hli_tag *tag);

/* The current tenure's hold begins, with this tag or without; consumes it. Name mutex. */
void hli_tag_begin(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_tag *tag);

/* When the watchdog is to come for the tag; HLI_NEVER. Name mutex, as all below. */
hli_ns hli_tag_due(const struct hli_tenure *tenure);
void hli_tag_look(struct hli_turn *turn, struct hli_tenure *tenure);
void hli_tag_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                      const struct hli_answer *answer);
bool hli_tag_is_shown(const struct hli_tenure *tenure);

/* What a tag says at this time of the server's, in milliseconds (0: not known). False when it is
 * not that holder's, or no tag. */
bool hli_tag_read(const char *text, const char *holder, int64_t server_ms,
                  struct hli_holder *ret_holder);
/* The same of a hold of this process. */
void hli_tag_read_own(const struct hli_tenure *tenure, hli_ns now, struct hli_holder *ret_holder);

void hli_tag_tell(const struct hli_holder *holder, hl_lock_info *info);

#endif
