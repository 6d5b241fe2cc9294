/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Which lane a call takes, and whether another one is worth a connection. Any thread. */
#include "redis/lanes_state.h"

/* With so many requests in flight, they go out in chunks (conn.c). */
enum { LANES_CROWD = 16 };

unsigned hli_link_lanes(const struct hli_link *first)
{
    return atomic_load(&first->lanes->count);
}

struct hli_link *hli_link_lane(struct hli_link *first, unsigned lane)
{
    const struct hli_lanes *lanes = first->lanes;
    unsigned number = lane % HLI_LANES_ROOM;

    return atomic_load_explicit(&lanes->open[number], memory_order_acquire) == lane
               ? atomic_load_explicit(&lanes->made[number], memory_order_relaxed)
               : first;
}

static bool lane_is_free(const struct hli_link *link)
{
    return atomic_load_explicit(&link->is_up, memory_order_relaxed) &&
           hli_conn_in_flight(&link->conn[HLI_LINK_COMMANDS]) == 0;
}

/* Requests that many threads send at a time go out together, and so do their answers: that is worth
 * more than a lane. */
static bool lane_has_crowd(const struct hli_link *first)
{
    return hli_conn_in_flight(&first->conn[HLI_LINK_COMMANDS]) >= LANES_CROWD;
}

/* All lanes were busy. */
static void lanes_note_meeting(struct hli_link *first)
{
    struct hli_lanes *lanes = first->lanes;
    hli_ns now = hli_now();

    if (now > hli_after_ms(atomic_load(&lanes->meetings_since), HLI_LANES_MEETINGS_MS)) {
        atomic_store(&lanes->meetings_since, now);
        atomic_store(&lanes->meetings, 0);
    }
    if (atomic_fetch_add(&lanes->meetings, 1) + 1 == HLI_LANES_MEETINGS) {
        atomic_store(&lanes->meetings_since, 0);
        hli_loop_post(first->loop, &lanes->grow);
    }
}

static void lanes_note_need(struct hli_lanes *lanes)
{
    if (atomic_load_explicit(&lanes->needs, memory_order_relaxed) < HLI_LANES_MEETINGS)
        atomic_fetch_add_explicit(&lanes->needs, 1, memory_order_relaxed);
}

unsigned hli_link_free_lane(struct hli_link *first, unsigned lane)
{
    unsigned count = hli_link_lanes(first), limit = (unsigned)first->settings->connections;

    if (limit == 1)
        return lane;
    if (lane_has_crowd(first))
        return 0;
    bool is_needed = !lane_is_free(first);
    if (is_needed)
        lanes_note_need(first->lanes);
    if (lane == 0 ? !is_needed : lane_is_free(hli_link_lane(first, lane)))
        return lane;
    for (unsigned i = 1; i < count; i++) {
        unsigned other = atomic_load(&first->lanes->open[(lane % HLI_LANES_ROOM + i) % count]);
        if (lane_is_free(hli_link_lane(first, other)))
            return other;
    }
    if (count < limit)
        lanes_note_meeting(first);
    return 0;
}
