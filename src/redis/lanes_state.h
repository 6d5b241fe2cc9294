/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Lanes from the inside: lane_choice.c chooses one for a call, lanes.c opens and closes them. */
#ifndef HLI_REDIS_LANES_STATE_H
#define HLI_REDIS_LANES_STATE_H

#include "redis/lanes.h"
#include "redis/link_state.h"

/* So many calls within this time find all lanes busy: then another lane is worth a connection. It
 * is not any more when for the time of a lease fewer calls than that find the first one busy. */
enum { HLI_LANES_MEETINGS = 100, HLI_LANES_MEETINGS_MS = 1000 };
/* Places: those of `connections`, the first lane's included, that of the confirmed one, and that of
 * the foreign one. */
enum { HLI_LANE_FOREIGN = HLI_LANE_CONFIRMED + 1, HLI_LANES_ROOM };

struct hli_lanes {
    struct hli_link_setup setup; /* immutable; all lanes have it, but for the address */
    /* [0]: the first lane. Set by the loop thread, the foreign one by any, once; read by a forked
     * child, too. */
    _Atomic(struct hli_link *) made[HLI_LANES_ROOM];
    atomic_uint open[HLI_LANES_ROOM]; /* the number by which names know it, 0 before it was up and
                                     while it cannot come back: drawn by the loop thread, the
                                     place here in its lowest digit. That of the confirmed lane
                                     never changes: nothing else serves its names */
    atomic_uint count;                /* of those that have been open */
    _Atomic hli_ns meetings_since;    /* atomic: calls that found no free lane */
    atomic_uint meetings;
    atomic_uint needs; /* calls that found the first lane busy, since the last look at it; counted
                          up to HLI_LANES_MEETINGS */
    struct hli_task grow, begin_foreign;
    struct hli_timer shrink; /* set while further lanes are open */
    bool is_whole;           /* loop thread: see hli_link_is_whole() */
};

#endif
