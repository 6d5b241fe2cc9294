/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tenures: states and validity. */
#include "lease/tenure.h"

#include "lease/client.h"
#include "lease/name.h"
#include "lease/notice.h"
#include "lease/write.h"

#include <inttypes.h>
#include <stdio.h>

#define BIT(state) (1u << HLI_TENURE_##state)

static const unsigned tenure_followers[] = {
    [HLI_TENURE_NEW] = BIT(ASK) | BIT(DYING),
    [HLI_TENURE_ASK] = BIT(WAIT) | BIT(OWN) | BIT(DYING) | BIT(DEAD),
    [HLI_TENURE_WAIT] = BIT(OWN) | BIT(DYING) | BIT(DEAD),
    [HLI_TENURE_OWN] = BIT(IDLE) | BIT(LOST) | BIT(DYING),
    [HLI_TENURE_IDLE] = BIT(OWN) | BIT(DYING),
    [HLI_TENURE_LOST] = BIT(DYING) | BIT(DEAD),
    [HLI_TENURE_DYING] = BIT(DEAD),
    [HLI_TENURE_DEAD] = 0,
};

#ifdef HL_TESTING
void (*hli_tenure_trace)(const struct hli_tenure *tenure, enum hli_tenure_state from);
#endif

const char *hli_tenure_state_name(enum hli_tenure_state state)
{
    static const char *const names[] = {"NEW",  "ASK",  "WAIT",  "OWN",
                                        "IDLE", "LOST", "DYING", "DEAD"};

    return names[state];
}

/* Thread number in the high half, tenure counter in the low one: a positive 63-bit number that is
 * never used twice. */
uint64_t hli_tenure_number(hl_client *client)
{
    struct hl_owner *opener = hli_owner_of_thread_if_any();
    uint64_t count =
        atomic_fetch_add_explicit(&client->tenure_numbers, 1, memory_order_relaxed) + 1;

    return ((uint64_t)(opener ? opener->number : 0) << 32) + count;
}

struct hli_tenure *hli_tenure_new(struct hli_name *name)
{
    struct hli_tenure *tenure = calloc(1, sizeof(*tenure));

    if (!tenure)
        return NULL;
    hli_ref_init(&tenure->ref);
    hli_name_ref(name);
    tenure->name = name;
    tenure->number =
        name->kind->is_used_once ? hli_name_number(name) : hli_tenure_number(name->client);
    tenure->told_due = HLI_NEVER;
    hli_notice_init(tenure);
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
    hli_write_unref(tenure->write);
    free(tenure->tag);
    hli_name_unref(tenure->name);
    free(tenure);
}

static bool tenure_is_sound(const struct hli_tenure *tenure)
{
    switch (tenure->state) {
    case HLI_TENURE_OWN:
        return tenure->valid_until > 0 && tenure->hold.owner && tenure->hold.count >= 1;
    case HLI_TENURE_IDLE:
        return tenure->valid_until > 0 && tenure->hold.owner && !tenure->releaser &&
               !tenure->deepener;
    case HLI_TENURE_LOST:
        return tenure->valid_until == 0 && tenure->hold.owner;
    case HLI_TENURE_DYING:
        return tenure->valid_until == 0;
    case HLI_TENURE_DEAD:
        return tenure->valid_until == 0 && !tenure->releaser && !tenure->deepener;
    default:
        return !tenure->hold.owner && !tenure->releaser && !tenure->deepener;
    }
}

void hli_tenure_move(struct hli_tenure *tenure, enum hli_tenure_state state)
{
    enum hli_tenure_state from = tenure->state;

    HLI_CHECK(tenure_followers[from] & (1u << state));
    tenure->state = state;
    if (state == HLI_TENURE_LOST || state == HLI_TENURE_DYING || state == HLI_TENURE_DEAD)
        tenure->valid_until = 0;
    HLI_CHECK(tenure_is_sound(tenure));
#ifdef HL_TESTING
    if (hli_tenure_trace)
        hli_tenure_trace(tenure, from);
#endif
}

const char *hli_tenure_field(const struct hli_tenure *tenure, char text[HLI_FIELD_SIZE])
{
    snprintf(text, HLI_FIELD_SIZE, "%s:%" PRIu64 "%s", tenure->name->client->id, tenure->number,
             tenure->name->kind->field_suffix);
    return text;
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

hli_ns hli_lease_validity(hli_ns sent_at, int64_t lease_ms)
{
    return hli_after_ms(sent_at, lease_ms) - hli_lease_margin(lease_ms);
}

hli_ns hli_hold_validity(const struct hli_tenure *tenure)
{
    return hli_earlier(tenure->valid_until, tenure->hold.ends);
}

void hli_tenure_extend(struct hli_tenure *tenure, hli_ns sent_at, int64_t lease_ms)
{
    hli_ns until = hli_lease_validity(sent_at, lease_ms);

    if (until <= tenure->valid_until)
        return;
    tenure->valid_until = until;
    tenure->valid_ms = lease_ms;
}
