/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The list of sentinels. */
#include "route/sentinel_list.h"

#include "base/error.h"
#include "route/address_map.h"

#include <string.h>

void hli_sentinel_list_deinit(struct hli_sentinel_list *list)
{
    for (size_t i = 0; i < list->learned_count; i++)
        hli_address_deinit(&list->learned[i]);
    list->learned_count = 0;
}

size_t hli_sentinel_list_count(const struct hli_sentinel_list *list)
{
    return list->url->address_count + list->learned_count;
}

static const struct hli_address *list_at(const struct hli_sentinel_list *list, size_t index)
{
    size_t given = list->url->address_count;

    return index < given ? &list->url->addresses[index] : &list->learned[index - given];
}

const struct hli_address *hli_sentinel_list_current(const struct hli_sentinel_list *list)
{
    return list_at(list, list->current);
}

void hli_sentinel_list_next(struct hli_sentinel_list *list)
{
    list->current = (list->current + 1) % hli_sentinel_list_count(list);
}

bool hli_sentinel_list_is_given(const struct hli_sentinel_list *list)
{
    return list->current < list->url->address_count;
}

/* The index of this address; the list's count when it is not there. */
static size_t list_find(const struct hli_sentinel_list *list, const char *host, uint16_t port)
{
    size_t i = 0;

    while (i < hli_sentinel_list_count(list) && !hli_address_is(list_at(list, i), host, port))
        i++;
    return i;
}

static void list_add(struct hli_sentinel_list *list, const char *host, uint16_t port)
{
    struct hli_address *room = &list->learned[list->learned_count];

    if (list->learned_count == HLI_SENTINELS_LEARNED ||
        list_find(list, host, port) < hli_sentinel_list_count(list))
        return;
    if (hli_address_init(room, host, port) == 0)
        list->learned_count++;
}

static void list_add_peer(struct hli_sentinel_list *list, const struct hli_reply *peer,
                          hl_error *ret_err)
{
    struct hli_address address;
    hl_error err;
    const struct hli_reply *host = hli_reply_field(peer, "ip");
    const struct hli_reply *flags = hli_reply_field(peer, "flags");
    int64_t port = 0;

    hli_reply_integer(hli_reply_field(peer, "port"), &port);
    if (flags && strstr(flags->text, "s_down"))
        return;
    if (!host || port < 1 || port > UINT16_MAX) {
        hli_fail(ret_err, HL_EPROTO, "what was announced is no address");
        return;
    }
    if (hli_address_map(list->settings, host->text, (uint16_t)port, &address, &err) < 0) {
        *ret_err = err;
        return;
    }
    list_add(list, address.host, address.port);
    hli_address_deinit(&address);
}

void hli_sentinel_list_learn(struct hli_sentinel_list *list, const struct hli_reply *peers,
                             hl_error *ret_err)
{
    struct hli_address current = {0};
    const struct hli_address *was = hli_sentinel_list_current(list);

    if (peers->kind != HLI_REPLY_ARRAY || peers->length == 0 ||
        hli_address_init(&current, was->host, was->port) < 0)
        return;
    hli_sentinel_list_deinit(list);
    list_add(list, current.host, current.port);
    for (size_t i = 0; i < peers->length; i++)
        list_add_peer(list, hli_reply_item(peers, i), ret_err);
    list->current = list_find(list, current.host, current.port);
    if (list->current == hli_sentinel_list_count(list))
        list->current = 0; /* without memory for it */
    hli_address_deinit(&current);
}

/* --- ids --- */

static struct hli_id list_id_at(const struct hli_reply *peers, size_t index)
{
    return hli_reply_id(hli_reply_field(hli_reply_item(peers, index), "runid"));
}

static bool list_has(const struct hli_sentinel_list *list, const struct hli_id *id)
{
    for (size_t i = 0; i < list->met_count && i < HLI_SENTINELS_MET; i++)
        if (strcmp(list->met[i].text, id->text) == 0)
            return true;
    return false;
}

bool hli_sentinel_list_has_met(const struct hli_sentinel_list *list, const struct hli_id *self,
                               const struct hli_reply *peers)
{
    bool tells = self->text[0] != 0;
    bool has = list->met_count == 0 || (tells && list_has(list, self));

    for (size_t i = 0; !has && hli_reply_item(peers, i); i++) {
        struct hli_id id = list_id_at(peers, i);
        tells = tells || id.text[0];
        has = id.text[0] && list_has(list, &id);
    }
    return has || !tells;
}

static void list_meet(struct hli_sentinel_list *list, const struct hli_id *id)
{
    if (id->text[0] && !list_has(list, id))
        list->met[list->met_count++ % HLI_SENTINELS_MET] = *id;
}

void hli_sentinel_list_meet(struct hli_sentinel_list *list, const struct hli_id *self,
                            const struct hli_reply *peers)
{
    list_meet(list, self);
    for (size_t i = 0; hli_reply_item(peers, i); i++) {
        struct hli_id id = list_id_at(peers, i);
        list_meet(list, &id);
    }
}
