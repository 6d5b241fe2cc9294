/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Lanes: opened when calls meet, closed when they do not any more, and kept at one server.
 *
 * A further lane connects only while the first one is up, to the same address; and it is up only at
 * the same server, by the run id. When the first lane comes up at another server, or is about to go
 * to another address, the others are dropped: a name must not be asked for at two servers.
 *
 * A link tells what happens to it by lane_events, and from here the topology's listener is told.
 */
#include "redis/lanes.h"

#include "base/check.h"
#include "base/error.h"
#include "redis/lanes_state.h"

#include <stdlib.h>
#include <string.h>

enum { LANES_AGAIN_MS = 500 }; /* a lane that is not needed had a request in flight */

static const struct hli_link_events lane_events;

static atomic_uint lanes_opened; /* further lanes of all clients, so far */

bool hli_link_is_whole(const struct hli_link *link)
{
    return link->lanes->is_whole;
}

bool hli_link_fails_with(const struct hli_link *link, const struct hli_link *failed)
{
    return link == failed || (link->first == failed && link->state == HLI_LINK_LOCATING);
}

static unsigned lane_place(const struct hli_link *link)
{
    unsigned place = 0;

    while (atomic_load(&link->lanes->made[place]) != link)
        place++;
    return place;
}

bool hli_link_is_confirmed(const struct hli_link *link)
{
    return lane_place(link) == HLI_LANE_CONFIRMED;
}

bool hli_link_is_foreign(const struct hli_link *link)
{
    return lane_place(link) == HLI_LANE_FOREIGN;
}

static bool lane_was_open(const struct hli_link *link)
{
    return lane_place(link) < atomic_load(&link->lanes->count) || hli_link_is_confirmed(link);
}

int hli_link_any_problem(struct hli_link *first, hl_error *ret_err)
{
    int code = 0;

    for (unsigned i = 0; code == 0 && i < HLI_LANES_ROOM; i++) {
        struct hli_link *link = atomic_load(&first->lanes->made[i]);
        if (link && lane_was_open(link))
            code = hli_link_problem(link, ret_err);
    }
    return code;
}

unsigned hli_link_connected_lanes(const struct hli_link *first)
{
    unsigned count = 0;

    for (unsigned i = 0; i < HLI_LANE_FOREIGN; i++) {
        const struct hli_link *link = atomic_load(&first->lanes->made[i]);
        count += link && hli_link_is_up(link);
    }
    return count;
}

/* Runs for all lanes but the first, also those that are not open yet. */
static void lanes_each(struct hli_lanes *lanes, void (*run)(struct hli_link *link))
{
    for (unsigned i = 1; i < HLI_LANES_ROOM; i++) {
        struct hli_link *link = atomic_load(&lanes->made[i]);
        if (link)
            run(link);
    }
}

/* --- loop thread --- */

static struct hli_link *lane_new(struct hli_link *first, unsigned place)
{
    struct hli_lanes *lanes = first->lanes;
    struct hli_link_setup setup = lanes->setup;

    setup.address = first->address.host ? &first->address : NULL;
    struct hli_link *link = hli_link_new(&setup, first, lanes, &lane_events);
    atomic_store(&lanes->made[place], link);
    return link;
}

/* Without memory the next meetings try again. */
static void lanes_grow(void *arg)
{
    struct hli_lanes *lanes = arg;
    struct hli_link *first = atomic_load(&lanes->made[0]);
    unsigned place = hli_link_lanes(first);

    if (first->state != HLI_LINK_UP || place >= (unsigned)first->settings->connections)
        return;
    struct hli_link *link = atomic_load(&lanes->made[place]);
    bool is_new = !link && (link = lane_new(first, place));
    bool is_anew =
        link && link->state == HLI_LINK_STOPPED && hli_link_move(link, &first->address) == 0;
    if (is_new || is_anew)
        hli_link_start(link);
}

/* The first lane is dialled again after a pause, or is being located: so are the others then. */
static bool lane_is_at_server(const struct hli_link *link)
{
    return link->state >= HLI_LINK_LOGIN && link->state <= HLI_LINK_UP;
}

/* Closes all lanes that are connected to the server, but this one. */
static void lanes_break_beside(struct hli_link *link, const hl_error *err)
{
    for (unsigned i = 0; i < HLI_LANES_ROOM; i++) {
        struct hli_link *other = atomic_load(&link->lanes->made[i]);
        if (other && other != link && lane_is_at_server(other))
            hli_link_break(other, err);
    }
}

static void lanes_leave(struct hli_link *first)
{
    hl_error err;

    hli_fail(&err, HL_ESERVER, "another server is used from now on");
    lanes_break_beside(first, &err);
}

void hli_lanes_located(struct hli_link *first, const struct hli_address *address,
                       const hl_error *err)
{
    bool leaves = first->state == HLI_LINK_LOCATING && !err && first->address.host &&
                  !hli_address_is(&first->address, address->host, address->port);

    if (leaves)
        lanes_leave(first);
    hli_link_located(first, address, err);
}

/* A further lane is located when the first one is up. */
static void lane_locate(struct hli_link *link)
{
    struct hli_link *first = link->first;

    if (link == first && link->listener.locate)
        link->listener.locate(link, link->listener.arg);
    else if (link == first || first->state == HLI_LINK_UP)
        hli_link_located(link, &first->address, NULL);
}

/* The first lane has come up. The confirmed and the foreign one were stopped with it if their
 * server changed; they are located now, and try that again if memory is short. */
static void lane_follow(struct hli_link *link)
{
    if (lane_place(link) >= HLI_LANES_MAX && link->state == HLI_LINK_STOPPED)
        hli_link_move(link, NULL);
    if (link->state == HLI_LINK_UP && hli_link_is_split(link))
        hli_link_fail(link, HL_ECONN, "the server was started anew, or is another one");
    if (link->state == HLI_LINK_LOCATING)
        lane_locate(link);
    else
        hli_link_hurry(link);
}

static bool lanes_are_up(const struct hli_lanes *lanes)
{
    const struct hli_link *confirmed = atomic_load(&lanes->made[HLI_LANE_CONFIRMED]);

    for (unsigned i = 0; i < atomic_load(&lanes->count); i++)
        if (atomic_load(&lanes->made[i])->state != HLI_LINK_UP)
            return false;
    return !confirmed || confirmed->state == HLI_LINK_UP;
}

hli_ns hli_link_up_since(const struct hli_link *first)
{
    return lanes_are_up(first->lanes) ? first->up_since : 0;
}

static void lanes_look_again(struct hli_lanes *lanes)
{
    int64_t lease_ms = lanes->setup.settings->watchdog_timeout_ms;

    atomic_store(&lanes->needs, 0);
    hli_timer_set(lanes->setup.dialler->loop, &lanes->shrink, hli_after_ms(hli_now(), lease_ms));
}

static void lane_open(struct hli_link *link)
{
    struct hli_lanes *lanes = link->lanes;
    unsigned place = lane_place(link), count = atomic_load(&lanes->count);

    if (atomic_load(&lanes->open[place]) != 0)
        return;
    HLI_CHECK(place <= count);
    unsigned lane = (atomic_fetch_add(&lanes_opened, 1) + 1) * HLI_LANES_ROOM + place;
    atomic_store_explicit(&lanes->open[place], lane, memory_order_release);
    if (place == count)
        atomic_store(&lanes->count, place + 1);
    if (count == 1)
        lanes_look_again(lanes);
}

/* No lane is opened behind these. One that the server refuses would come when the next is closed.
 */
static void lanes_stop_behind(struct hli_lanes *lanes, unsigned count)
{
    for (unsigned i = count; i < HLI_LANES_MAX; i++) {
        struct hli_link *link = atomic_load(&lanes->made[i]);
        if (link)
            hli_link_stop(link, HL_ECONN, "the connection is not needed any more");
    }
}

/* A name's requests go out behind those before them: so a lane with a request in flight, or one
 * that is lost and may have sent some, is not closed yet. */
static bool lane_retire(struct hli_link *link)
{
    atomic_uint *lane = &link->lanes->open[lane_place(link)];
    bool may_have_sent = link->state != HLI_LINK_UP && atomic_load(lane) != 0;

    if (may_have_sent || !hli_link_retire(link))
        return false;
    atomic_store(lane, 0);
    return true;
}

/* The first one serves its names from now on. */
static bool lanes_close_last(struct hli_lanes *lanes)
{
    unsigned last = atomic_load(&lanes->count) - 1;
    struct hli_link *link = atomic_load(&lanes->made[last]);
    bool was_up = link->state == HLI_LINK_UP;

    HLI_CHECK(last > 0);
    lanes_stop_behind(lanes, last + 1);
    if (!lane_retire(link))
        return false;
    atomic_store(&lanes->count, last);
    lanes->is_whole = lanes_are_up(lanes);
    if (lanes->is_whole && !was_up) /* it was missed until now */
        link->listener.up(link, link->listener.arg);
    return true;
}

static bool lanes_may_close(const struct hli_lanes *lanes)
{
    return atomic_load(&lanes->made[0])->state == HLI_LINK_UP &&
           atomic_load(&lanes->needs) < HLI_LANES_MEETINGS;
}

static void lanes_shrink(void *arg)
{
    struct hli_lanes *lanes = arg;

    if (lanes_may_close(lanes) && !lanes_close_last(lanes))
        hli_timer_set(lanes->setup.dialler->loop, &lanes->shrink,
                      hli_after_ms(hli_now(), LANES_AGAIN_MS));
    else if (atomic_load(&lanes->count) > 1)
        lanes_look_again(lanes);
}

/* All that this lane sent has run, or never will. The first lane serves its names until it is back,
 * with another number. Not if it is back already. */
static void lane_close(struct hli_link *link)
{
    atomic_uint *lane = &link->lanes->open[lane_place(link)];
    hl_error err = HL_ERROR_INIT;

    if (link->state == HLI_LINK_UP || atomic_load(lane) == 0)
        return;
    atomic_store(lane, 0);
    hli_link_problem(link, &err);
    link->listener.failed(link, &err, link->listener.arg);
}

/* A server may have no CLIENT KILL for this user. One that cannot run it now is asked again by the
 * next attempt that fails, and so is the next one when the connection of the first lane is lost. */
static void lane_killed(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_link *link = HLI_PART_OF(op, struct hli_link, kill);

    hli_op_deinit(op);
    if (answer->verdict == HLI_REPLIED || answer->verdict == HLI_FAILED)
        lane_close(link);
}

/* Has the first lane the end of this one under way? */
static bool lane_kills_past(struct hli_link *link)
{
    if (link->kill.bytes)
        return true;
    HLI_PART_IS(&link->kill, struct hli_link, kill);
    link->kill.done = lane_killed;
    if (hli_handshake_write_kill(&link->handshake[HLI_LINK_COMMANDS].past, &link->kill) == 0 &&
        hli_conn_send(link->first->conn, &link->kill, HLI_CONN_AT_ONCE))
        return true;
    hli_op_deinit(&link->kill);
    return false;
}

/* An attempt to connect has failed, while the server is in use: the lane is closed when its last
 * requests are ended for certain. True if that is told then. */
static bool lane_begin_close(struct hli_link *link)
{
    const struct hli_handshake_past *past = &link->handshake[HLI_LINK_COMMANDS].past;
    const struct hli_link *first = link->first;
    bool is_past =
        past->id == 0 || strcmp(past->run_id, first->handshake[HLI_LINK_COMMANDS].now.run_id) != 0;

    if (first->state != HLI_LINK_UP || atomic_load(&link->lanes->open[lane_place(link)]) == 0 ||
        hli_link_is_confirmed(link))
        return false;
    if (!is_past)
        return lane_kills_past(link);
    lane_close(link);
    return true;
}

/* Sentinels may replace a master that lives on. Once for each term. */
static void lane_advise(const struct hli_link *link)
{
    const char *advice =
        hli_term_advice(&link->handshake[HLI_LINK_COMMANDS].term, link->settings->old_master_ms);

    if (advice)
        link->lanes->setup.log(HL_LOG_WARN, advice, link->lanes->setup.log_arg);
}

/* Once for each pair of values that the server tells. */
static void lane_compare_options(struct hli_link *link)
{
    const struct hli_term_said *said = &link->handshake[HLI_LINK_COMMANDS].term;
    const struct hli_term_options own = hli_link_graceful(link);
    struct hli_term_options *told = &link->first->term.told;
    char text[HLI_TERM_TEXT];

    if (told->grace_ms == said->options.grace_ms &&
        told->old_master_ms == said->options.old_master_ms)
        return;
    *told = said->options;
    if (hli_term_warns(said, &own, text))
        link->lanes->setup.log(HL_LOG_WARN, text, link->lanes->setup.log_arg);
}

/* The listener is told of lanes that were open before: no name has taken one earlier. */
static void lane_on_up(struct hli_link *link)
{
    bool is_new = !lane_was_open(link);

    if (hli_link_is_first(link))
        lanes_each(link->lanes, lane_follow);
    else
        lane_open(link);
    link->lanes->is_whole = lanes_are_up(link->lanes);
    if (link->handshake[HLI_LINK_COMMANDS].asks_bounds && !link->term.is_told)
        lane_advise(link);
    if (link->settings->failover_grace_ms > 0)
        lane_compare_options(link);
    if (!is_new)
        link->listener.up(link, link->listener.arg);
}

/* Those that wait for the first lane have its problem. */
static void lane_share_problem(struct hli_link *link)
{
    hl_error err = HL_ERROR_INIT;

    hli_link_problem(link->first, &err);
    if (hli_link_fails_with(link, link->first))
        hli_link_set_problem(link, &err, true);
}

/* The first lane may be idle, and would notice late that the server is out of reach. */
static void lane_on_settled(struct hli_link *link, bool was_up, const hl_error *err)
{
    struct hli_link *first = link->first;

    if (link == first)
        lanes_each(link->lanes, lane_share_problem);
    else if (was_up && first->state == HLI_LINK_UP)
        hli_handshake_beat(&first->handshake[HLI_LINK_COMMANDS], false);
    if (link != first && !was_up && lane_begin_close(link))
        return;
    if (lane_was_open(link))
        (was_up ? link->listener.down : link->listener.failed)(link, err, link->listener.arg);
    else
        link->lanes->setup.log(HL_LOG_INFO, err->text, link->lanes->setup.log_arg);
    if (was_up)
        link->lanes->is_whole = false;
}

static void lane_on_unusable(struct hli_link *link, const hl_error *err)
{
    if (link->state == HLI_LINK_WAITING)
        return; /* there is nothing to close */
    lanes_break_beside(link, err);
    hli_link_break(link, err);
}

void hli_lanes_drop(struct hli_link *link, const char *reason)
{
    hl_error err;

    hli_fail(&err, HL_ESERVER, "%s", reason);
    lane_on_unusable(link, &err);
}

static const struct hli_link_events lane_events = {.locate = lane_locate,
                                                   .up = lane_on_up,
                                                   .settled = lane_on_settled,
                                                   .unusable = lane_on_unusable,
                                                   .conn = hli_link_conn_events};

static void foreign_on_up(struct hli_link *link)
{
    const struct hli_link_setup *setup = &link->lanes->setup;

    setup->foreign_up(setup->log_arg);
}

static void foreign_on_settled(struct hli_link *link, bool was_up, const hl_error *err)
{
    const struct hli_link_setup *setup = &link->lanes->setup;

    (void)was_up;
    setup->log(HL_LOG_INFO, err->text, setup->log_arg);
}

/* What it is told of the server may be an answer to another command. */
static const struct hli_link_events foreign_events = {.locate = lane_locate,
                                                      .up = foreign_on_up,
                                                      .settled = foreign_on_settled,
                                                      .unusable = hli_link_break,
                                                      .conn = hli_link_foreign_events};

/* Replies of commands such as LRANGE and COMMAND. What hiredis' reader of 2019 can nest is 7. */
static const struct hli_reply_bounds foreign_bounds = {
    .bytes = (size_t)16 * 1024 * 1024, .items = (size_t)1024 * 1024, .levels = 7};

/* From here on it shares the problems of the first lane until that is up. */
static void lanes_begin_foreign(void *arg)
{
    struct hli_lanes *lanes = arg;
    struct hli_link *link = atomic_load(&lanes->made[HLI_LANE_FOREIGN]);
    hl_error err;

    if (link->state == HLI_LINK_LOCATING && link->first->state != HLI_LINK_UP &&
        hli_link_has_failed(link->first, &err))
        hli_link_set_problem(link, &err, true);
    lane_locate(link);
}

static struct hli_link *foreign_new(struct hli_link *first)
{
    struct hli_link_setup setup = first->lanes->setup;

    setup.address = NULL; /* the loop thread's */
    setup.ups = NULL;
    struct hli_link *link = hli_link_new(&setup, first, first->lanes, &foreign_events);
    if (!link)
        return NULL;
    link->conn[HLI_LINK_COMMANDS].reader.bounds = &foreign_bounds;
    link->state = HLI_LINK_LOCATING;
    return link;
}

struct hli_link *hli_link_foreign(struct hli_link *first)
{
    struct hli_lanes *lanes = first->lanes;
    struct hli_link *made = atomic_load(&lanes->made[HLI_LANE_FOREIGN]);
    struct hli_link *link = made ? NULL : foreign_new(first);

    if (!link)
        return made;
    if (!atomic_compare_exchange_strong(&lanes->made[HLI_LANE_FOREIGN], &made, link)) {
        hli_link_free(link);
        return made;
    }
    hli_loop_post(first->loop, &lanes->begin_foreign);
    return link;
}

struct hli_link *hli_link_counterpart(struct hli_link *first, const struct hli_link *link)
{
    if (hli_link_is_foreign(link))
        return hli_link_foreign(first);
    return hli_link_is_confirmed(link) ? hli_link_lane(first, HLI_LANE_CONFIRMED) : first;
}

static void lanes_init(struct hli_lanes *lanes, const struct hli_link_setup *setup,
                       struct hli_link *first)
{
    lanes->setup = *setup;
    lanes->begin_foreign = (struct hli_task){.run = lanes_begin_foreign, .arg = lanes};
    lanes->grow = (struct hli_task){.run = lanes_grow, .arg = lanes};
    lanes->shrink = (struct hli_timer){.run = lanes_shrink, .arg = lanes};
    atomic_init(&lanes->made[0], first);
    atomic_init(&lanes->count, 1);
}

struct hli_link *hli_lanes_new(const struct hli_link_setup *setup)
{
    struct hli_lanes *lanes = calloc(1, sizeof(*lanes));
    struct hli_link *first = lanes ? hli_link_new(setup, NULL, lanes, &lane_events) : NULL;

    if (!first) {
        free(lanes);
        return NULL;
    }
    lanes_init(lanes, setup, first);
    if (setup->settings->min_replicas == 0)
        return first;
    struct hli_link *confirmed = lane_new(first, HLI_LANE_CONFIRMED);
    if (!confirmed) {
        hli_lanes_free(first);
        return NULL;
    }
    confirmed->state = HLI_LINK_LOCATING; /* so it has the problems of the first one until then */
    atomic_init(&lanes->open[HLI_LANE_CONFIRMED], HLI_LANE_CONFIRMED);
    return first;
}

void hli_lanes_stop(struct hli_link *first, int code, const char *reason)
{
    struct hli_lanes *lanes = first->lanes;

    hli_timer_clear(lanes->setup.dialler->loop, &lanes->shrink);
    lanes->is_whole = false;
    atomic_store(&lanes->count, 1);
    for (unsigned i = 1; i < HLI_LANES_ROOM; i++) {
        struct hli_link *link = atomic_load(&lanes->made[i]);
        if (i != HLI_LANE_CONFIRMED)
            atomic_store(&lanes->open[i], 0);
        if (link)
            hli_link_stop(link, code, reason);
    }
    hli_link_stop(first, code, reason);
}

void hli_lanes_free(struct hli_link *first)
{
    if (!first)
        return;
    struct hli_lanes *lanes = first->lanes;
    lanes_each(lanes, hli_link_free);
    hli_link_free(first);
    free(lanes);
}

void hli_lanes_abandon(struct hli_link *first)
{
    lanes_each(first->lanes, hli_link_abandon);
    hli_link_abandon(first);
}
