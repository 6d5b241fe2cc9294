/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Lanes: the links of one client to one server. The first one has the subscriptions too, and stands
 * for the server: it is located, started and moved, and the others follow it. They are
 * opened one after the other, up to the option `connections`, when calls find all open ones busy;
 * each reconnects by itself. The requests of one name take one lane. A name knows its lane by a
 * number that no other lane has, at any server: so a lane that opens is not taken by a name that
 * had another one, and has requests on the way by the first one.
 */
#ifndef HLI_REDIS_LANES_H
#define HLI_REDIS_LANES_H

#include "redis/link.h"

enum {
    HLI_LANES_MAX = 16,
    /* The number of the lane for names whose requests replicas confirm (confirm.h): WAIT holds up
     * all that is behind it, and so has a connection of its own. A client with the option
     * min_replicas has one at each server, from the start on. */
    HLI_LANE_CONFIRMED = HLI_LANES_MAX,
};

/* The first lane to a server. NULL when memory is out. */
struct hli_link *hli_lanes_new(const struct hli_link_setup *setup);
/* Closes all lanes, for this reason; the requests in flight end as HLI_UNKNOWN. Loop thread. */
void hli_lanes_stop(struct hli_link *first, int code, const char *reason);
void hli_lanes_free(struct hli_link *first);    /* stopped; NULL is fine */
void hli_lanes_abandon(struct hli_link *first); /* in a forked child */

/* The answer to `locate`: the first lane dials this address (borrowed); or the attempt has failed,
 * and err says why. Does nothing when the lane has not asked. Loop thread, also inside `locate`. */
void hli_lanes_located(struct hli_link *first, const struct hli_address *address,
                       const hl_error *err);

/* Drops all lanes to the server of this link, which must not be used, for this reason of the code
 * HL_ESERVER. Does nothing between two attempts to connect. Loop thread. */
void hli_lanes_drop(struct hli_link *link, const char *reason);

/* The lane of this number, if it is open at the server of this first lane; else the first one,
 * whose number is 0. A lane that is lost alone stays open until an attempt to connect has failed
 * and all that it sent has run, or never will. Any thread. */
struct hli_link *hli_link_lane(struct hli_link *first, unsigned lane);

/* Is it the lane for names whose requests replicas confirm? Any thread. */
bool hli_link_is_confirmed(const struct hli_link *link);

/* The lane for foreign requests, whose words are the program's own: no name's request goes by it,
 * so whatever they do to their connection, and whatever becomes of it, touches no lock. It is made
 * when it is first asked for, and connects when the first lane is up; it counts in no statistics
 * and has no events. NULL when memory is out. Any thread. */
struct hli_link *hli_link_foreign(struct hli_link *first);
bool hli_link_is_foreign(const struct hli_link *link);

/* The lane that serves the requests of this link at the server of another first one. NULL when
 * memory is out. Any thread. */
struct hli_link *hli_link_counterpart(struct hli_link *first, const struct hli_link *link);

/* For a call that is about to block for requests about a name that takes this lane: the number of a
 * lane without a request in flight, this one rather than another. If there is none, or the first
 * lane has a crowd, it is the first one; and another lane may be opened. Any thread. */
unsigned hli_link_free_lane(struct hli_link *first, unsigned lane);

/* Are all open lanes of this link's server up? Within `down`: were they, until this one was lost?
 * Loop thread. */
bool hli_link_is_whole(const struct hli_link *link);

/* Since when this first lane has been up; 0: not all open lanes are. Loop thread. */
hli_ns hli_link_up_since(const struct hli_link *first);

/* Has the attempt of `failed` to connect failed for this link, too? For itself; that of the first
 * lane also for those that connect only when it is up. Loop thread. */
bool hli_link_fails_with(const struct hli_link *link, const struct hli_link *failed);

/* How many lanes requests of this first lane's server may go by, it included; a lane counts while
 * it is dialled again, too. Any thread. */
unsigned hli_link_lanes(const struct hli_link *first);

/* How many are connected now, the confirmed one included. Any thread. */
unsigned hli_link_connected_lanes(const struct hli_link *first);

/* As hli_link_problem(), of the first open lane that has one. Any thread. */
int hli_link_any_problem(struct hli_link *first, hl_error *ret_err);

#endif
