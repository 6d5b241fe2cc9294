/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The link: a connection for commands between one client and one server. The first link to a server
 * has one for pub/sub beside it; when one is lost, both are closed. The link does their handshakes,
 * watches them by PING, and reconnects with backoff. The links to one server are made and closed
 * together (lanes.h).
 *
 * The link never sends a request twice: when it comes up again, the listener's objects decide what
 * to send.
 */
#ifndef HLI_REDIS_LINK_H
#define HLI_REDIS_LINK_H

#include "base/gate.h"
#include "redis/dial.h"
#include "redis/logins.h"
#include "redis/pubsub.h"
#include "redis/term.h"
#include "redis/url.h"

#include <hirelock/client.h>

struct hli_link;

/* What a server says of itself in the handshake. */
struct hli_link_met {
    const struct hli_id *node; /* of a cluster */
    const char *run_id;        /* "": it does not tell */
    hli_ns began;              /* HLI_NEVER: it does not tell */
};

struct hli_link_listener { /* on the loop thread */
    void (*up)(struct hli_link *link, void *arg);
    void (*down)(struct hli_link *link, const hl_error *err, void *arg); /* the link was up */
    /* An attempt to connect failed. */
    void (*failed)(struct hli_link *link, const hl_error *err, void *arg);
    /* The link is up, and the master says its replication offset, and that of its foremost replica
     * (-1: it has none): at once, and then every few seconds. NULL: of no interest. */
    void (*replicated)(struct hli_link *link, int64_t offset, int64_t replica_offset, void *arg);
    /* A first link has reached this server: is it the one that is meant? Else it is not used, and
     * the attempt has failed for the reason that err gets. NULL: any is. */
    bool (*met)(struct hli_link *link, const struct hli_link_met *server, hl_error *ret_err,
                void *arg);
    /* Before each attempt of a first link: finds out where the server is, and ends in
     * hli_lanes_located(). NULL: it stays where it is. */
    void (*locate)(struct hli_link *link, void *arg);
    /* In a cluster: the answer may say that another node serves the slot (MOVED, ASK), or none
     * (CLUSTERDOWN). May change the answer; or sends the request to another link, returns true, and
     * this answer goes to nobody. NULL: the server is no node of a cluster. */
    bool (*redirected)(struct hli_link *link, struct hli_op *op, struct hli_answer *answer,
                       void *arg);
    void *arg;
};

struct hli_link_setup {
    const struct hli_dialler *dialler; /* borrowed, as the next three */
    const hl_client_options *settings;
    const struct hli_url *url;
    struct hli_logins *logins;         /* how to log in */
    const struct hli_address *address; /* copied; NULL: `locate` says it */
    struct hli_link_listener listener;
    void (*log)(hl_log_level level, const char *text, void *arg);
    void *log_arg;
    void (*foreign_up)(void *arg); /* of log_arg: a foreign lane is up (lanes.h); loop thread */
    /* Counters of requests; of links that are up; of first links that are up. */
    atomic_uint_fast64_t *commands, *ups, *first_ups;
};

/* Any thread: begins to connect, on the loop. */
void hli_link_start(struct hli_link *link);

/* A stopped link begins anew at this address (borrowed), when it is started; NULL: where it is
 * located then, which needs no memory now. Errors: HL_ENOMEM. Loop thread. */
int hli_link_move(struct hli_link *link, const struct hli_address *address);

/* There is news: a link that was lost, or whose last attempt failed, makes its next one without a
 * pause. Loop thread. */
void hli_link_hurry(struct hli_link *link);

/* Any thread. done runs at once with HLI_UNSENT when the link is not up, and with HLI_BOUNCED when
 * the request is not wanted any more. */
void hli_link_send(struct hli_link *link, struct hli_op *op);

/* Sends a request behind ASKING, in one piece: a node that imports a slot serves it then. False
 * when the link is not up: nothing was sent. Loop thread. */
bool hli_link_send_asking(struct hli_link *link, struct hli_op *op);

/* This thread promises to block for the requests that it sends from now on, and then to lead: if it
 * is given the role, no other thread reads the answers until then. */
void hli_link_lead_begin(struct hli_link *link);
/* Redeems the promise. A thread that was given the role reads in place of the loop until the gate
 * is opened or nudged, or the deadline comes. It returns with the gate shut if it was not given the
 * role, or gave the role back earlier. */
void hli_link_lead(struct hli_link *link, struct hli_gate *gate, hli_ns deadline);

/* The same for several links, which are added first: a thread that has begun leads those whose
 * role it was given. */
void hli_link_add_reader(struct hli_link *link, struct hli_readers *readers);
void hli_links_lead_begin(const struct hli_readers *readers);
void hli_links_lead(const struct hli_readers *readers, struct hli_gate *gate, hli_ns deadline);

/* Messages of this channel may be delivered on any thread, by a caller that listens. Before the
 * link is started. */
void hli_link_set_mailbox(struct hli_link *link, struct hli_channel *mailbox);
/* Reads mailbox messages in place of the loop, if no other thread does; returns as the lead above.
 */
void hli_link_listen(struct hli_link *link, struct hli_gate *gate, hli_ns deadline);

/* Any thread: the reason why the link is not up. Returns the code; 0 when the link is up, or has
 * not been tried yet. */
int hli_link_problem(struct hli_link *link, hl_error *ret_err);

/* When the server began that this link met last; HLI_NEVER: it does not tell (INFO); 0: none was
 * met. Any thread. */
hli_ns hli_link_server_began(const struct hli_link *link);

/* The same of its data, which may be younger: they were lost. 0: it has not been asked, since it
 * was met last. Any thread, as the next, which notes the answer. */
hli_ns hli_link_data_began(const struct hli_link *link);
void hli_link_note_data(struct hli_link *link, hli_ns began);

/* Does this link's server keep all that it writes, so that a restart forgets nothing: is it on its
 * disk before the answer (appendonly, appendfsync always, no-appendfsync-on-rewrite no)? It is
 * asked when somebody wants to know. Any thread. */
enum hli_link_keeps { HLI_KEEPS_UNKNOWN, HLI_KEEPS_ASKED, HLI_KEEPS_SOME, HLI_KEEPS_ALL };
enum hli_link_keeps hli_link_keeps(struct hli_link *link);

/* Is it up? Any thread. */
bool hli_link_is_up(const struct hli_link *link);

/* Has it been up at the address that it has? Loop thread. */
bool hli_link_was_up(const struct hli_link *link);

/* Has the last attempt to connect failed? Then ret_err says why. Any thread. */
bool hli_link_has_failed(struct hli_link *link, hl_error *ret_err);

/* The first link to the server of this link; itself if it is that. Any thread. */
struct hli_link *hli_link_first(struct hli_link *link);

/* The term of its server; it lives as long as the link. Any thread. */
const struct hli_term *hli_link_term(const struct hli_link *link);
/* Once for each term of the server of this first link: what is left of its grace; else 0. Loop
 * thread. */
int64_t hli_link_take_grace_ms(struct hli_link *first);

struct hli_pubsub *hli_link_pubsub(struct hli_link *link); /* the first link's; loop thread */

/* A number of the server behind the link, which is the same for all processes: until the server
 * starts anew, or is another one. 0: not known. Any thread. */
uint64_t hli_link_server(const struct hli_link *link);

/* "127.0.0.1:6379" */
void hli_link_where(struct hli_link *link, char text[HLI_WHERE_SIZE]); /* any thread */

#endif
