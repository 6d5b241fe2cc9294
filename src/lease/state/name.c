/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Names: the map, and the keys and channels derived from a name. */
#include "lease/state/name.h"

#include "base/check.h"
#include "base/error.h"
#include "lease/state/contention.h"

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

size_t hli_name_write(const struct hli_name *name, const char *prefix, char text[HLI_CHANNEL_SIZE])
{
    return hli_name_derive((struct hli_bytes){name->bytes, name->length}, prefix, text);
}

size_t hli_name_write_suffixed(const struct hli_name *name, const char *suffix,
                               char text[HLI_CHANNEL_SIZE])
{
    size_t used = name_write_braced(text, (struct hli_bytes){name->bytes, name->length});

    memcpy(text + used, suffix, strlen(suffix) + 1);
    return used + strlen(suffix);
}

static bool name_begins(const void *bytes, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(bytes, prefix, strlen(prefix)) == 0;
}

/* The prefix that makes this a key of ours beside another name, or NULL: a lock of such a name
 * would damage the other name's lock. */
static const char *name_reserved_prefix(const void *bytes, size_t length)
{
    static const char *const prefixes[] = {
        HLI_NAME_QUEUE,         HLI_NAME_FENCE,          HLI_NAME_TAG,
        HLI_NAME_WAITER,        HLI_NAME_WRITER,         HLI_NAME_FAIR,
        HLI_NAME_NOTE,          HLI_NAME_TOKEN,          HLI_NAME_DATA,
        "redisson_lock_queue:", "redisson_lock_timeout:"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (name_begins(bytes, length, prefixes[i]))
            return prefixes[i];
    return NULL;
}

/* Redisson derives a lock's channel with braces around the name. */
static bool name_splits_its_slot(const void *bytes, size_t length)
{
    char channel[HLI_CHANNEL_SIZE];
    size_t channel_length =
        hli_name_derive((struct hli_bytes){bytes, length}, HLI_NAME_REDISSON_CHANNEL, channel);
    struct hli_bytes key = name_slot_tag(bytes, length),
                     other = name_slot_tag(channel, channel_length);
    return key.length != other.length || memcmp(key.data, other.data, key.length) != 0;
}

int hli_name_check(const char *what, const void *bytes, size_t length, hl_error *err)
{
    const char *prefix;

    if (length < 1)
        return hli_fail(err, HL_EINVAL, "the %s is empty", what);
    if (length > HLI_NAME_LIMIT)
        return hli_fail(err, HL_EINVAL, "the %s has %zu bytes: at most %d are allowed", what,
                        length, HLI_NAME_LIMIT);
    if ((prefix = name_reserved_prefix(bytes, length)))
        return hli_fail(err, HL_EINVAL, "the %s begins with %s, as keys beside a lock do", what,
                        prefix);
    if (name_splits_its_slot(bytes, length))
        return hli_fail(err, HL_EINVAL,
                        "the braces of the %s would put its keys into different slots of a cluster",
                        what);
    return 0;
}

/*
 * The map's key is the bytes, their NUL, the owner key if the kind has one, and the kind's id, so
 * that keys of two kinds are never equal.
 */
static size_t name_key_length(const struct hli_kind *kind, size_t length)
{
    return length + 1 + (kind->is_per_owner ? sizeof(struct hli_owner_key) : 0) + 1;
}

static size_t name_write_key(const struct hli_name_key *key, char *to)
{
    size_t used = key->length;

    memcpy(to, key->bytes, used);
    to[used++] = '\0';
    if (key->kind->is_per_owner) {
        memcpy(to + used, &key->owner_key, sizeof(key->owner_key));
        used += sizeof(key->owner_key);
    }
    to[used++] = key->kind->id;
    return used;
}

struct hli_link *hli_name_link(const struct hli_name *name)
{
    return hli_client_link(name->client, name->slot,
                           atomic_load_explicit(&name->lane, memory_order_relaxed));
}

/* An answer that is missing may belong to a request that the server has not seen yet. A request
 * that is sent by another connection meanwhile may overtake it. */
static void name_take_lane(struct hli_name *name, unsigned lane)
{
    hli_mutex_lock(&name->mutex);
    if (atomic_load(&name->lane) != HLI_LANE_CONFIRMED && !name->current &&
        TAILQ_EMPTY(&name->past) && TAILQ_EMPTY(&name->waiters) && name->calls == 0)
        atomic_store(&name->lane, lane);
    hli_mutex_unlock(&name->mutex);
}

/* Several names of one key would have lanes of their own: their kinds stay on the first one. */
static bool name_may_take_lanes(const struct hli_name *name)
{
    return !name->kind->is_per_owner && !name->kind->sibling && !name->kind->quorum &&
           atomic_load(&name->lane) != HLI_LANE_CONFIRMED;
}

void hli_name_take_confirmed_lane(struct hli_name *name)
{
    if (atomic_load(&name->lane) != HLI_LANE_CONFIRMED)
        name_take_lane(name, HLI_LANE_CONFIRMED);
}

struct hli_link *hli_name_choose_link(struct hli_name *name)
{
    unsigned lane = atomic_load_explicit(&name->lane, memory_order_relaxed);
    unsigned free_lane = lane;

    if (name_may_take_lanes(name))
        free_lane = hli_link_free_lane(hli_client_link(name->client, name->slot, 0), lane);
    if (free_lane != lane)
        name_take_lane(name, free_lane);
    return hli_name_link(name);
}

void hli_name_join_lane(struct hli_name *name, const struct hli_name *other)
{
    unsigned lane = atomic_load(&other->lane);

    if (name->client == other->client && name->slot == other->slot && lane != HLI_LANE_CONFIRMED &&
        atomic_load(&name->lane) != lane && name_may_take_lanes(name))
        name_take_lane(name, lane);
}

bool hli_name_shares_lane(const struct hli_name *name, const struct hli_name *other)
{
    return name->client == other->client && name->slot == other->slot &&
           atomic_load(&name->lane) == atomic_load(&other->lane);
}

bool hli_name_forget_lane(struct hli_name *name)
{
    hli_mutex_lock(&name->mutex);
    bool forgets = atomic_load(&name->lane) != 0 &&
                   hli_name_link(name) == hli_client_link(name->client, name->slot, 0);
    if (forgets)
        atomic_store(&name->lane, 0);
    hli_mutex_unlock(&name->mutex);
    return forgets;
}

unsigned hli_name_begin_call(struct hli_name *name)
{
    hli_mutex_lock(&name->mutex);
    name->calls++;
    unsigned lane = atomic_load(&name->lane);
    hli_mutex_unlock(&name->mutex);
    return lane;
}

void hli_name_end_call(struct hli_name *name)
{
    hli_mutex_lock(&name->mutex);
    name->calls--;
    hli_mutex_unlock(&name->mutex);
}

struct hli_owner_key hli_name_owner_key(const struct hli_name *name)
{
    struct hli_owner_key owner_key;

    memcpy(&owner_key, name->bytes + name->length + 1, sizeof(owner_key));
    return owner_key;
}

static struct hli_name *name_new(hl_client *client, const struct hli_name_key *key)
{
    size_t used = name_key_length(key->kind, key->length);
    struct hli_name *name = calloc(1, sizeof(*name) + used);

    if (!name)
        return NULL;
    hli_ref_init(&name->ref);
    name->client = client;
    name->kind = key->kind;
    name->length = (uint16_t)key->length;
    name->slot = (uint16_t)hli_topology_slot(client->topology, key->bytes, key->length);
    name_write_key(key, name->bytes);
    hli_mutex_init(&name->mutex);
    TAILQ_INIT(&name->past);
    TAILQ_INIT(&name->waiters);
    return name;
}

static void name_free(struct hli_name *name)
{
    HLI_CHECK(!name->current && TAILQ_EMPTY(&name->past) && TAILQ_EMPTY(&name->waiters));
    free(name->contention);
    if (name->kind->quorum)
        name->kind->quorum->free(name->quorum);
    else if (name->kind->changed)
        hli_client_unref(name->voter->speaker);
    if (!name->kind->quorum)
        free(name->settled); /* or the voter */
    hli_mutex_deinit(&name->mutex);
    if (name->shared)
        hli_name_unref(name->shared);
    free(name);
}

/* Returns the name with a reference, or NULL. With the names mutex. */
static struct hli_name *name_look_up(hl_client *client, const struct hli_name_key *key)
{
    char bytes[HLI_NAME_LIMIT + sizeof(struct hli_owner_key) + 2];

    if (key->length > HLI_NAME_LIMIT)
        return NULL;
    struct hli_map_node *node = hli_map_find(&client->names, bytes, name_write_key(key, bytes));
    if (!node)
        return NULL;
    hli_name_ref(HLI_OF(node, struct hli_name, node));
    return HLI_OF(node, struct hli_name, node);
}

struct hli_name *hli_name_find(hl_client *client, const struct hli_name_key *key)
{
    hli_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up(client, key);
    hli_mutex_unlock(&client->names_mutex);
    return name;
}

/* Of a fresh name of an owner: the handle through which the owner acquires has that name, so it is
 * in the map. With the names mutex. */
static struct hli_name *name_look_up_shared(hl_client *client, const struct hli_name_key *key)
{
    const struct hli_kind *kind = key->kind;
    struct hli_name_key shared = {.kind = kind, .bytes = key->bytes, .length = key->length};

    return kind->is_per_owner && hli_kind_is_of_threads(kind) && key->owner_key.half[0] != 0
               ? name_look_up(client, &shared)
               : NULL;
}

/* Enters `fresh` into the map, unless another was entered meanwhile. Returns the name in the map,
 * or NULL when memory is out. */
static struct hli_name *name_enter(struct hli_name *fresh, const struct hli_name_key *key)
{
    hl_client *client = fresh->client;

    hli_mutex_lock(&client->names_mutex);
    struct hli_name *name = name_look_up(client, key);
    if (!name && hli_map_insert(&client->names, &fresh->node, fresh->bytes,
                                name_key_length(fresh->kind, fresh->length)) == 0) {
        fresh->shared = name_look_up_shared(client, key);
        name = fresh;
    }
    hli_mutex_unlock(&client->names_mutex);
    return name;
}

struct hli_name *hli_name_get(hl_client *client, const struct hli_name_key *key)
{
    struct hli_name *name = hli_name_find(client, key);

    if (name)
        return name;
    struct hli_name *fresh = name_new(client, key);
    if (!fresh)
        return NULL;
    name = name_enter(fresh, key);
    if (name == fresh)
        hli_client_ref(client); /* the name's */
    else
        name_free(fresh);
    return name;
}

void hli_name_ref(struct hli_name *name)
{
    hli_ref_take(&name->ref);
}

/*
 * The map has no reference of its own, so the last reference is dropped under the map's mutex; all
 * others are dropped without it.
 */
void hli_name_unref(struct hli_name *name)
{
    unsigned count = atomic_load_explicit(&name->ref.count, memory_order_relaxed);
    hl_client *client = name->client;

    while (count > 1)
        if (atomic_compare_exchange_weak_explicit(&name->ref.count, &count, count - 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return;
    hli_mutex_lock(&client->names_mutex);
    bool last = hli_ref_drop(&name->ref);
    if (last)
        hli_map_remove(&client->names, &name->node);
    hli_mutex_unlock(&client->names_mutex);
    if (!last)
        return;
    name_free(name);
    hli_client_unref(client);
}

int hli_name_fail(hl_error *err, int code, const struct hli_name *name, const char *verb,
                  const char *text)
{
    char shown[96];

    return hli_fail(err, code, "%s '%s': %s%s", verb,
                    hli_error_escape(shown, sizeof(shown), name->bytes, name->length), text,
                    hli_answer_advice(text));
}

const char *hli_name_not_owner(const struct hli_name *name)
{
    const struct hli_tenure *tenure = name->current;

    return tenure && tenure->state == HLI_TENURE_OWN && tenure->hold.is_accepted
               ? "this owner does not hold the lock; another thread or owner of this client does, "
                 "and "
                 "has to end its hold itself"
               : hl_err_text(HL_ENOTOWNER);
}

int hli_name_refuse(hl_error *err, int code, const struct hli_name *name, hl_call call,
                    const char *text)
{
    hli_count_failure(name->client, call, code, hli_answer_reason(code, text));
    return hli_name_fail(err, code, name, call == HL_CALL_ACQUIRE ? "acquire" : "release", text);
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

    hli_mutex_lock(&client->names_mutex);
    hli_map_each(&client->names, names_collect, &list);
    hli_mutex_unlock(&client->names_mutex);
    while ((name = SLIST_FIRST(&list))) {
        SLIST_REMOVE_HEAD(&list, visit_link);
        visit(name, arg);
        hli_name_unref(name);
    }
}
