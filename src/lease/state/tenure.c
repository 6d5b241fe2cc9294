/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tenures: states and validity. */
#include "lease/state/tenure.h"

#include "lease/calls/client.h"
#include "lease/state/name.h"

#include <inttypes.h>
#include <stdio.h>

#define BIT(state) (1u << HLI_TENURE_##state)

enum { LEASE_SLACKS = 300 };

static const unsigned tenure_followers[] = {
    [HLI_TENURE_NEW] = BIT(ASK) | BIT(RELEASING),
    [HLI_TENURE_ASK] = BIT(WAIT) | BIT(OWN) | BIT(RELEASING) | BIT(ENDED),
    [HLI_TENURE_WAIT] = BIT(OWN) | BIT(RELEASING) | BIT(ENDED),
    [HLI_TENURE_OWN] = BIT(IDLE) | BIT(LOST) | BIT(RELEASING),
    [HLI_TENURE_IDLE] = BIT(OWN) | BIT(RELEASING),
    [HLI_TENURE_LOST] = BIT(RELEASING) | BIT(ENDED),
    [HLI_TENURE_RELEASING] = BIT(ENDED),
    [HLI_TENURE_ENDED] = 0,
};

#ifdef HL_TESTING
void (*hli_tenure_trace)(const struct hli_tenure *tenure, enum hli_tenure_state from);
#endif

const char *hli_tenure_state_name(enum hli_tenure_state state)
{
    static const char *const names[] = {"NEW",  "ASK",  "WAIT",      "OWN",
                                        "IDLE", "LOST", "RELEASING", "ENDED"};

    return names[state];
}

/* A part of a Redlock at one master has the number of the attempt at all masters, once. */
uint64_t hli_tenure_next_number(const struct hli_name *name)
{
    uint64_t number = name->kind->changed ? atomic_exchange(&name->voter->number, 0) : 0;
    hl_client *speaker = name->kind->changed ? name->voter->speaker : name->client;

    return number != 0 ? number : hli_client_next_number(speaker);
}

struct hli_tenure *hli_tenure_new(struct hli_name *name, uint64_t number)
{
    const struct hli_kind *kind = name->kind;
    struct hli_tenure *tenure =
        kind->quorum ? kind->quorum->make(name) : calloc(1, sizeof(*tenure));

    if (!tenure)
        return NULL;
    hli_ref_init(&tenure->ref);
    hli_name_ref(name);
    tenure->name = name;
    tenure->number = number;
    tenure->visit_at = HLI_NEVER;
    HLI_PART_IS(&tenure->ask, struct hli_tenure, ask);
    HLI_PART_IS(&tenure->release, struct hli_tenure, release);
    return tenure;
}

void hli_tenure_ref(struct hli_tenure *tenure)
{
    hli_ref_take(&tenure->ref);
}

void hli_tenure_unref(struct hli_tenure *tenure)
{
    if (!tenure || !hli_ref_drop(&tenure->ref))
        return;
    hli_owner_unref(tenure->hold.owner);
    hli_op_deinit(&tenure->ask);
    hli_op_deinit(&tenure->release);
    free(tenure->tag);
    struct hli_name *name = tenure->name;
    if (name->kind->quorum)
        name->kind->quorum->unmake(tenure);
    free(tenure);
    hli_name_unref(name);
}

bool hli_tenure_is_contending(const struct hli_tenure *tenure)
{
    return tenure && (tenure->state == HLI_TENURE_ASK || tenure->state == HLI_TENURE_WAIT);
}

bool hli_tenure_has_key(const struct hli_tenure *tenure)
{
    return tenure && (tenure->state == HLI_TENURE_OWN || tenure->state == HLI_TENURE_IDLE);
}

bool hli_tenure_shows(const struct hli_tenure *tenure, uint32_t count)
{
    return tenure->least_count == count && tenure->most_count == count;
}

bool hli_tenure_is_over(const struct hli_tenure *tenure)
{
    return tenure->state >= HLI_TENURE_LOST;
}

void hli_tenure_ask_soon(struct hli_tenure *tenure)
{
    if (hli_tenure_is_contending(tenure))
        tenure->ask_at = 0;
}

static bool tenure_is_sound(const struct hli_tenure *tenure)
{
    enum hli_tenure_state state = tenure->state; /* clang switches over no atomic enum */

    switch (state) {
    case HLI_TENURE_OWN:
        return tenure->valid_until > 0 && tenure->hold.owner && tenure->hold.count >= 1;
    case HLI_TENURE_IDLE:
        return tenure->valid_until > 0 && tenure->hold.owner && !tenure->releaser &&
               !tenure->reentry;
    case HLI_TENURE_LOST:
        return tenure->valid_until == 0 && tenure->hold.owner;
    case HLI_TENURE_RELEASING:
        return tenure->valid_until == 0;
    case HLI_TENURE_ENDED:
        return tenure->valid_until == 0 && !tenure->releaser && !tenure->reentry;
    default:
        return !tenure->hold.owner && !tenure->releaser && !tenure->reentry;
    }
}

void hli_tenure_move(struct hli_tenure *tenure, enum hli_tenure_state state)
{
    enum hli_tenure_state from = tenure->state;

    HLI_CHECK(tenure_followers[from] & (1u << state));
    atomic_store_explicit(&tenure->state, state, memory_order_release);
    if (state >= HLI_TENURE_LOST)
        tenure->valid_until = 0;
    HLI_CHECK(tenure_is_sound(tenure));
#ifdef HL_TESTING
    if (hli_tenure_trace)
        hli_tenure_trace(tenure, from);
#endif
}

/* Each part of a Redlock writes a value of its own: a server that answers for another one, as
 * addresses may move, has none of the other one's values. */
const char *hli_tenure_write_field(const struct hli_name *name, uint64_t number,
                                   char text[HLI_FIELD_SIZE])
{
    const hl_client *speaker = name->kind->changed ? name->voter->speaker : name->client;
    int used = snprintf(text, HLI_FIELD_SIZE, "%s:%" PRIu64 "%s", speaker->id, number,
                        name->kind->field_suffix);

    if (name->kind->changed)
        snprintf(text + used, HLI_FIELD_SIZE - (size_t)used, ":%u", name->voter->index);
    return text;
}

const char *hli_tenure_field(const struct hli_tenure *tenure, char text[HLI_FIELD_SIZE])
{
    return hli_tenure_write_field(tenure->name, tenure->number, text);
}

uint64_t hli_tenure_take_token(struct hli_tenure *tenure)
{
    HLI_CHECK(tenure->tokens > 0);
    tenure->tokens--;
    return tenure->token++;
}

hli_ns hli_lease_margin(int64_t lease_ms)
{
    return HLI_MS(lease_ms) / 100 + HLI_MS(2);
}

hli_ns hli_lease_slack(int64_t lease_ms)
{
    return HLI_MS(lease_ms) / LEASE_SLACKS;
}

hli_ns hli_lease_validity(hli_ns sent_at, int64_t lease_ms)
{
    return hli_after_ms(sent_at, lease_ms) - hli_lease_margin(lease_ms);
}

hli_ns hli_hold_validity(const struct hli_tenure *tenure)
{
    return hli_earlier(tenure->valid_until, tenure->hold.ends);
}

bool hli_hold_is_valid(const struct hli_tenure *tenure, hli_ns now)
{
    return tenure->state == HLI_TENURE_OWN && !tenure->is_returned && now < tenure->valid_until &&
           now < tenure->hold.ends;
}

void hli_tenure_extend(struct hli_tenure *tenure, hli_ns sent_at, int64_t lease_ms,
                       unsigned replicas, unsigned term)
{
    hli_ns until = hli_lease_validity(sent_at, lease_ms);

    tenure->term = term;
    if (until <= tenure->valid_until) {
        tenure->replicas = hli_replicas_more(tenure->replicas, replicas);
        return;
    }
    tenure->valid_until = until;
    tenure->valid_ms = lease_ms;
    tenure->replicas = replicas;
}
