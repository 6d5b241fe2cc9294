/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Names: the map, and what is derived from a name. */
#include "lease/name.h"

#include "base/check.h"
#include "lease/contest.h"

#include <string.h>

static const char *const name_prefixes[] = {
    [HLI_NAME_REDISSON_CHANNEL] = "redisson_lock__channel:",
    [HLI_NAME_OWN_CHANNEL] = "hirelock:",
    [HLI_NAME_QUEUE] = "hirelock_queue:",
};

/* The bytes that cluster hashes (redis.io, "Redis cluster specification", hash tags). */
static struct hli_bytes name_slot_tag(const char *text, size_t length)
{
    const char *open = memchr(text, '{', length);
    const char *close = open ? memchr(open, '}', length - (size_t)(open - text)) : NULL;

    if (!close || close == open + 1)
        return (struct hli_bytes){text, length};
    return (struct hli_bytes){open + 1, (size_t)(close - open - 1)};
}

/* As Redisson does it: in braces, unless the name has one of its own. */
static size_t name_write_derived(char *to, const char *prefix, const char *bytes, size_t length)
{
    bool has_brace = memchr(bytes, '{', length) != NULL;
    size_t used = strlen(prefix);

    memcpy(to, prefix, used);
    if (!has_brace)
        to[used++] = '{';
    memcpy(to + used, bytes, length);
    used += length;
    if (!has_brace)
        to[used++] = '}';
    to[used] = '\0';
    return used;
}

size_t hli_name_write(const struct hli_name *name, enum hli_name_kind kind,
                      char text[HLI_CHANNEL_SIZE])
{
    return name_write_derived(text, name_prefixes[kind], name->bytes, name->length);
}

/* A queue of ours: what is done to it would be done to a lock of that name. */
static bool name_is_reserved(const void *bytes, size_t length)
{
    const char *prefix = name_prefixes[HLI_NAME_QUEUE];

    return length >= strlen(prefix) && memcmp(bytes, prefix, strlen(prefix)) == 0;
}

bool hli_name_is_valid(const void *bytes, size_t length)
{
    char channel[HLI_CHANNEL_SIZE];

    if (length < 1 || length > HLI_NAME_LIMIT || name_is_reserved(bytes, length))
        return false;
    size_t channel_length =
        name_write_derived(channel, name_prefixes[HLI_NAME_REDISSON_CHANNEL], bytes, length);
    struct hli_bytes key = name_slot_tag(bytes, length),
                     other = name_slot_tag(channel, channel_length);
    return key.length == other.length && memcmp(key.data, other.data, key.length) == 0;
}

static struct hli_name *name_new(hl_client *client, const void *bytes, size_t length)
{
    struct hli_name *name = calloc(1, sizeof(*name) + length + 1);

    if (!name)
        return NULL;
    hli_ref_init(&name->ref);
    name->client = client;
    name->length = (uint16_t)length;
    memcpy(name->bytes, bytes, length);
    pthread_mutex_init(&name->mutex, NULL);
    TAILQ_INIT(&name->past);
    TAILQ_INIT(&name->waiters);
    return name;
}

static void name_free(struct hli_name *name)
{
    HLI_CHECK(!name->current && TAILQ_EMPTY(&name->past) && TAILQ_EMPTY(&name->waiters));
    hli_contest_free(name->contest);
    pthread_mutex_destroy(&name->mutex);
    free(name);
}

/* With the names mutex. */
static struct hli_name *name_look_up(hl_client *client, const void *bytes, size_t length)
{
    struct hli_map_node *node = hli_map_find(&client->names, bytes, length);

    if (!node)
        return NULL;
    hli_name_ref(HLI_OF(node, struct hli_name, node));
    return HLI_OF(node, struct hli_name, node);
}

int hli_name_get(hl_client *client, const void *bytes, size_t length, struct hli_name **ret_name)
{
    struct hli_name *fresh = name_new(client, bytes, length);

    if (!fresh)
        return HL_ENOMEM;
    pthread_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up(client, bytes, length);
    int rc = name ? 0 : hli_map_insert(&client->names, &fresh->node, fresh->bytes, length);
    pthread_mutex_unlock(&client->names_mutex);
    if (name || rc < 0)
        name_free(fresh);
    else
        hli_client_ref(client); /* the name's */
    if (rc == 0)
        *ret_name = name ? name : fresh;
    return rc;
}

struct hli_name *hli_name_find(hl_client *client, const void *bytes, size_t length)
{
    pthread_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up(client, bytes, length);
    pthread_mutex_unlock(&client->names_mutex);
    return name;
}

void hli_name_ref(struct hli_name *name)
{
    hli_ref_take(&name->ref);
}

/*
 * The map finds a name without a reference of its own, so the last reference is dropped with the
 * map's mutex; those before it, which are most, without.
 */
void hli_name_unref(struct hli_name *name)
{
    unsigned count = atomic_load_explicit(&name->ref.count, memory_order_relaxed);
    hl_client *client = name->client;

    while (count > 1)
        if (atomic_compare_exchange_weak_explicit(&name->ref.count, &count, count - 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return;
    pthread_mutex_lock(&client->names_mutex);
    bool last = hli_ref_drop(&name->ref);
    if (last)
        hli_map_remove(&client->names, &name->node);
    pthread_mutex_unlock(&client->names_mutex);
    if (!last)
        return;
    name_free(name);
    hli_client_unref(client);
}

struct hli_tenure *hli_name_hold_of(const struct hli_name *name, const struct hl_owner *owner)
{
    struct hli_tenure *tenure = name->current;

    if (tenure && tenure->state == HLI_TENURE_OWN && tenure->hold.owner == owner)
        return tenure;
    TAILQ_FOREACH (tenure, &name->past, link)
        if (tenure->state == HLI_TENURE_LOST && tenure->hold.owner == owner)
            return tenure;
    return NULL;
}

struct hli_tenure *hli_name_tenure(const struct hli_name *name, uint64_t number)
{
    struct hli_tenure *tenure = name->current;

    if (tenure && tenure->number == number)
        return tenure;
    TAILQ_FOREACH (tenure, &name->past, link)
        if (tenure->number == number)
            return tenure;
    return NULL;
}

SLIST_HEAD(names_list, hli_name);

static void names_collect(struct hli_map_node *node, void *arg)
{
    struct names_list *list = arg;
    struct hli_name *name = HLI_OF(node, struct hli_name, node);

    hli_name_ref(name);
    SLIST_INSERT_HEAD(list, name, visit_link);
}

void hli_names_visit(hl_client *client, void (*visit)(struct hli_name *name, void *arg), void *arg)
{
    struct names_list list = SLIST_HEAD_INITIALIZER(list);
    struct hli_name *name;

    pthread_mutex_lock(&client->names_mutex);
    hli_map_each(&client->names, names_collect, &list);
    pthread_mutex_unlock(&client->names_mutex);
    while ((name = SLIST_FIRST(&list))) {
        SLIST_REMOVE_HEAD(&list, visit_link);
        visit(name, arg);
        hli_name_unref(name);
    }
}
