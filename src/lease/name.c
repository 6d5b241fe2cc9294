/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Names: the map, and what is derived from a name. */
#include "lease/name.h"

#include "base/check.h"
#include "lease/contest.h"

#include <string.h>

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
static size_t name_write_braced(char *to, struct hli_bytes name)
{
    bool has_brace = memchr(name.data, '{', name.length) != NULL;
    size_t used = 0;

    if (!has_brace)
        to[used++] = '{';
    memcpy(to + used, name.data, name.length);
    used += name.length;
    if (!has_brace)
        to[used++] = '}';
    to[used] = '\0';
    return used;
}

size_t hli_name_derive(struct hli_bytes name, const char *prefix, char text[HLI_CHANNEL_SIZE])
{
    size_t used = strlen(prefix);

    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the rest follows */
    memcpy(text, prefix, used);
    return used + name_write_braced(text + used, name);
}

static struct hli_bytes name_text(const struct hli_name *name)
{
    return (struct hli_bytes){name->bytes, name->length};
}

size_t hli_name_write(const struct hli_name *name, const char *prefix, char text[HLI_CHANNEL_SIZE])
{
    return hli_name_derive(name_text(name), prefix, text);
}

size_t hli_name_write_suffixed(const struct hli_name *name, const char *suffix,
                               char text[HLI_CHANNEL_SIZE])
{
    size_t used = name_write_braced(text, name_text(name));

    memcpy(text + used, suffix, strlen(suffix) + 1);
    return used + strlen(suffix);
}

size_t hli_name_write_channel(const struct hli_name *name, char text[HLI_CHANNEL_SIZE])
{
    if (name->kind->write_channel)
        return name->kind->write_channel(name, text);
    return hli_name_write(name, name->kind->channel, text);
}

static bool name_begins(const void *bytes, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(bytes, prefix, strlen(prefix)) == 0;
}

/* A key of ours beside another name: what is done to it would be done to a lock of that name. */
static bool name_is_reserved(const void *bytes, size_t length)
{
    static const char *const prefixes[] = {HLI_NAME_QUEUE, HLI_NAME_FENCE, HLI_NAME_TAG,
                                           HLI_NAME_WRITER, HLI_NAME_FAIR};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (name_begins(bytes, length, prefixes[i]))
            return true;
    return false;
}

bool hli_name_is_valid(const void *bytes, size_t length)
{
    char channel[HLI_CHANNEL_SIZE];

    if (length < 1 || length > HLI_NAME_LIMIT || name_is_reserved(bytes, length))
        return false;
    size_t channel_length =
        hli_name_derive((struct hli_bytes){bytes, length}, HLI_NAME_REDISSON_CHANNEL, channel);
    struct hli_bytes key = name_slot_tag(bytes, length),
                     other = name_slot_tag(channel, channel_length);
    return key.length == other.length && memcmp(key.data, other.data, key.length) == 0;
}

/*
 * Behind the bytes and their NUL stands what else makes the map's key: the lane, if the kind has
 * one, and last the kind, so that keys of two kinds never are the same. Then the number of a name
 * that is used once, which is no part of the key.
 */
static size_t name_key_length(const struct hli_kind *kind, size_t length)
{
    return length + 1 + (kind->is_per_owner ? sizeof(struct hli_lane) : 0) + 1;
}

static size_t name_write_key(const struct hli_name_key *key, char *to)
{
    size_t used = key->length;

    memcpy(to, key->bytes, used);
    to[used++] = '\0';
    if (key->kind->is_per_owner) {
        memcpy(to + used, &key->lane, sizeof(key->lane));
        used += sizeof(key->lane);
    }
    to[used++] = key->kind->id;
    return used;
}

struct hli_name_key hli_name_key_of_lock(const void *bytes, size_t length)
{
    return (struct hli_name_key){.kind = &hli_kind_lock, .bytes = bytes, .length = length};
}

struct hli_lane hli_name_lane(const struct hli_name *name)
{
    struct hli_lane lane;

    memcpy(&lane, name->bytes + name->length + 1, sizeof(lane));
    return lane;
}

uint64_t hli_name_number(const struct hli_name *name)
{
    uint64_t number;

    memcpy(&number, name->bytes + name_key_length(name->kind, name->length), sizeof(number));
    return number;
}

static struct hli_name *name_new(hl_client *client, const struct hli_name_key *key)
{
    size_t used = name_key_length(key->kind, key->length);
    struct hli_name *name =
        calloc(1, sizeof(*name) + used + (key->kind->is_used_once ? sizeof(uint64_t) : 0));

    if (!name)
        return NULL;
    hli_ref_init(&name->ref);
    name->client = client;
    name->kind = key->kind;
    name->length = (uint16_t)key->length;
    name_write_key(key, name->bytes);
    if (key->kind->is_used_once) {
        uint64_t number = hli_tenure_number(client);
        memcpy(name->bytes + used, &number, sizeof(number));
    }
    pthread_mutex_init(&name->mutex, NULL);
    TAILQ_INIT(&name->past);
    TAILQ_INIT(&name->waiters);
    return name;
}

static void name_free(struct hli_name *name)
{
    HLI_CHECK(!name->current && TAILQ_EMPTY(&name->past) && TAILQ_EMPTY(&name->waiters));
    hli_contest_free(name->contest);
    free(name->settled);
    pthread_mutex_destroy(&name->mutex);
    free(name);
}

/* With the names mutex. */
static struct hli_name *name_look_up(hl_client *client, const struct hli_name_key *key)
{
    char bytes[HLI_NAME_LIMIT + sizeof(struct hli_lane) + 2];

    if (key->length > HLI_NAME_LIMIT)
        return NULL;
    struct hli_map_node *node = hli_map_find(&client->names, bytes, name_write_key(key, bytes));
    return node ? HLI_OF(node, struct hli_name, node) : NULL;
}

static int name_enter_map(struct hli_name *name)
{
    return hli_map_insert(&name->client->names, &name->node, name->bytes,
                          name_key_length(name->kind, name->length));
}

/* One that has been used stays in the map until it is freed, for its release may have to be
 * repeated; but its owner's next tenure does not find it any more. With the names mutex. */
static void name_set_aside(struct hli_name *name)
{
    struct hli_lane lane = hli_name_lane(name);

    hli_map_remove(&name->client->names, &name->node);
    lane.half[1] = hli_name_number(name);
    memcpy(name->bytes + name->length + 1, &lane, sizeof(lane));
    HLI_CHECK(name_enter_map(name) == 0); /* only a map's first node can fail */
}

/* With a reference; NULL when there is none that can be used. With the names mutex. */
static struct hli_name *name_look_up_usable(hl_client *client, const struct hli_name_key *key)
{
    struct hli_name *name = name_look_up(client, key);

    if (name && key->kind->is_used_once && atomic_load(&name->is_spent)) {
        name_set_aside(name);
        return NULL;
    }
    if (name)
        hli_name_ref(name);
    return name;
}

/* Enters it, unless another has been entered meanwhile; *ret_name is the one that is there. */
static int name_enter(struct hli_name *fresh, const struct hli_name_key *key,
                      struct hli_name **ret_name)
{
    hl_client *client = fresh->client;
    int rc = 0;

    pthread_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up_usable(client, key);
    if (!name)
        rc = name_enter_map(fresh);
    pthread_mutex_unlock(&client->names_mutex);
    if (rc == 0)
        *ret_name = name ? name : fresh;
    return rc;
}

int hli_name_get(hl_client *client, const struct hli_name_key *key, struct hli_name **ret_name)
{
    pthread_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up_usable(client, key);
    pthread_mutex_unlock(&client->names_mutex);
    struct hli_name *fresh = name ? NULL : name_new(client, key);
    if (!name && !fresh)
        return HL_ENOMEM;
    int rc = name ? 0 : name_enter(fresh, key, &name);
    if (rc == 0 && name == fresh)
        hli_client_ref(client); /* the name's */
    else if (fresh)
        name_free(fresh);
    if (rc == 0)
        *ret_name = name;
    return rc;
}

int hli_name_get_next(const struct hli_name *name, struct hli_name **ret_name)
{
    struct hli_lane lane = hli_name_lane(name);

    lane.half[1] = 0; /* it is in its place, or set aside already */
    return hli_name_get(name->client,
                        &(struct hli_name_key){name->kind, name->bytes, name->length, lane},
                        ret_name);
}

struct hli_name *hli_name_find(hl_client *client, const struct hli_name_key *key)
{
    pthread_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up(client, key);
    if (name)
        hli_name_ref(name);
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
