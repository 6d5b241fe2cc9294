/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Quorums: their making and their end. */
#include "lease/several/quorum.h"

#include "base/error.h"
#include "base/random.h"
#include "lease/state/contention.h"

#include <stdlib.h>
#include <string.h>

/* A call that waits for longer than that leaves the reading to the loops: the close of a client
 * waits for the thread that reads there. */
enum { QUORUM_LEAD_MS = 100 };

_Static_assert((int)HLI_QUORUM_LIMIT <= (int)HLI_READERS_MAX, "a thread leads at all masters");

/* Tells the voters of one quorum from those of another one. */
static atomic_uint_fast64_t quorum_numbers;

void hli_quorum_free(struct hli_quorum *quorum)
{
    if (!quorum)
        return;
    for (size_t i = 0; i < quorum->count; i++)
        if (quorum->voters[i])
            hli_name_unref(quorum->voters[i]);
    free(quorum);
}

static struct hli_name *quorum_new_voter(const struct hli_name *name, hl_client *client,
                                         const struct hli_name_key *key, size_t index)
{
    struct hli_voter *voter = calloc(1, sizeof(*voter));
    struct hli_name *made = voter ? hli_name_get(client, key) : NULL;

    if (!made) {
        free(voter);
        return NULL;
    }
    hli_client_ref(name->client); /* the voter's */
    voter->speaker = name->client;
    voter->index = (unsigned)index;
    made->voter = voter;
    return made;
}

static struct hli_quorum *quorum_new(const struct hli_name *name, hl_client *const *clients,
                                     size_t count, const struct hli_kind *voter)
{
    const struct hli_name_key key = {.kind = voter,
                                     .bytes = name->bytes,
                                     .length = name->length,
                                     .owner_key = {{atomic_fetch_add(&quorum_numbers, 1) + 1}}};
    struct hli_quorum *quorum = calloc(1, sizeof(*quorum) + count * sizeof(struct hli_name *));

    if (!quorum)
        return NULL;
    quorum->count = count;
    quorum->majority = count / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        quorum->voters[i] = quorum_new_voter(name, clients[i], &key, i);
        if (!quorum->voters[i]) {
            hli_quorum_free(quorum);
            return NULL;
        }
    }
    return quorum;
}

static bool quorum_is(const struct hli_quorum *quorum, hl_client *const *clients, size_t count)
{
    for (size_t i = 0; quorum->count == count && i < count; i++)
        if (quorum->voters[i]->client != clients[i])
            return false;
    return quorum->count == count;
}

int hli_quorum_set(struct hli_name *name, hl_client *const *clients, size_t count,
                   const struct hli_kind *voter, hl_error *err)
{
    struct hli_quorum *fresh = quorum_new(name, clients, count, voter);

    if (!fresh)
        return hli_no_memory(err);
    hli_mutex_lock(&name->mutex);
    if (!name->quorum) {
        name->quorum = fresh;
        fresh = NULL;
    }
    bool is_same = quorum_is(name->quorum, clients, count);
    hli_mutex_unlock(&name->mutex);
    hli_quorum_free(fresh);
    return is_same ? 0
                   : hli_fail(err, HL_EINVAL,
                              "the first client has a Redlock of this name on other masters: give "
                              "the same clients in the same order");
}

static const struct hli_link *quorum_link(const struct hli_quorum *quorum, size_t index)
{
    return hli_name_link(quorum->voters[index]);
}

bool hli_quorum_is_one_server(const struct hli_quorum *quorum, size_t one, size_t other)
{
    uint64_t mark = hli_link_server(quorum_link(quorum, one));

    return mark != 0 && mark == hli_link_server(quorum_link(quorum, other));
}

void hli_quorum_cut_index(char *value)
{
    static const char digits[] = "0123456789";
    char *number = strlen(value) > HLI_UUID_LENGTH && value[HLI_UUID_LENGTH] == ':'
                       ? value + HLI_UUID_LENGTH + 1
                       : NULL;
    char *index = number ? number + strspn(number, digits) : NULL;

    if (index && index > number && *index == ':' && index[1] != '\0' &&
        index[1 + strspn(index + 1, digits)] == '\0')
        *index = '\0';
}

void hli_quorum_where(const struct hli_quorum *quorum, size_t index, char text[HLI_WHERE_SIZE])
{
    hli_link_where(hli_name_link(quorum->voters[index]), text);
}

/* A client that is closed has no answer to read. */
void hli_quorum_lead_begin(const struct hli_name *name, struct hli_quorum_lead *lead)
{
    const struct hli_quorum *quorum = name->quorum;

    lead->readers.count = 0;
    lead->visited = 0;
    for (size_t i = 0; i < quorum->count; i++) {
        if (!hli_client_visit(quorum->voters[i]->client))
            continue;
        lead->visited |= UINT32_C(1) << i;
        hli_link_add_reader(hli_name_link(quorum->voters[i]), &lead->readers);
    }
    hli_links_lead_begin(&lead->readers);
}

void hli_quorum_lead(const struct hli_name *name, struct hli_quorum_lead *lead,
                     struct hli_wait *wait)
{
    const struct hli_quorum *quorum = name->quorum;

    hli_links_lead(&lead->readers, &wait->gate,
                   hli_earlier(wait->check_at, hli_after_ms(hli_now(), QUORUM_LEAD_MS)));
    for (size_t i = 0; i < quorum->count; i++)
        if (lead->visited >> i & 1)
            hli_client_leave(quorum->voters[i]->client);
}

/* The contention's timer ends the subscription when no attempt has been made for a while. */
static void quorum_listen_at(struct hli_name *voter)
{
    struct hli_turn turn;

    if (!hli_client_visit(voter->client))
        return;
    hli_turn_begin(&turn, voter);
    if (hli_contention_of(voter)) {
        voter->contention->idle_since = turn.now;
        hli_turn_listen(&turn);
    }
    hli_turn_end(&turn);
    hli_client_leave(voter->client);
}

void hli_quorum_listen(struct hli_quorum *quorum)
{
    for (size_t i = 0; i < quorum->count; i++)
        quorum_listen_at(quorum->voters[i]);
}
