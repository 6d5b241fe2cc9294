/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/blocked.h"

#include "cli/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCKED_AGAIN_MS = 200, /* when a circle is read again */
    BLOCKED_ROOM = 64       /* for items, at first; then twice as much, and so on */
};

/* The array with room for one more; it may have moved. NULL when memory is out: then it is as it
 * was. */
static void *blocked_room(struct cli_blocked *blocked, void *array, size_t count, size_t size)
{
    bool is_full = count == 0 || (count >= BLOCKED_ROOM && (count & (count - 1)) == 0);
    size_t room = count == 0 ? BLOCKED_ROOM : 2 * count;
    void *grown = is_full ? realloc(array, room * size) : array;

    blocked->lacks_memory = blocked->lacks_memory || !grown;
    return grown;
}

/* The place that a key has; CLI_NONE: none yet. */
static size_t blocked_place(json_object *places, const char *key)
{
    json_object *place;

    return json_object_object_get_ex(places, key, &place) ? (size_t)json_object_get_int64(place)
                                                          : CLI_NONE;
}

static void blocked_set_place(json_object *places, const char *key, size_t place)
{
    json_object_object_add(places, key, json_object_new_int64((int64_t)place));
}

/* The owner of this key, with this label if it is new. */
static size_t blocked_owner(struct cli_blocked *blocked, const char *key, const char *label)
{
    size_t at = blocked_place(blocked->owner_places, key);

    if (at != CLI_NONE)
        return at;
    struct cli_blocked_owner *owners =
        blocked_room(blocked, blocked->owners, blocked->owner_count, sizeof(*owners));
    if (!owners)
        return CLI_NONE;
    at = blocked->owner_count++;
    blocked->owners = owners;
    owners[at] = (struct cli_blocked_owner){.wait = CLI_NONE, .first = CLI_NONE};
    snprintf(owners[at].label, sizeof(owners[at].label), "%s", label);
    blocked_set_place(blocked->owner_places, key, at);
    return at;
}

static void blocked_write_owner(const struct cli_wait *wait, char key[CLI_LABEL])
{
    snprintf(key, CLI_LABEL, "%s:%llu", wait->client, (unsigned long long)wait->owner);
}

static size_t blocked_add_lock(struct cli_blocked *blocked, const struct cli_name *name)
{
    struct cli_blocked_lock *locks =
        blocked_room(blocked, blocked->locks, blocked->lock_count, sizeof(*locks));
    char *bytes = locks ? malloc(name->length + 1) : NULL;

    blocked->locks = locks ? locks : blocked->locks;
    blocked->lacks_memory = blocked->lacks_memory || !bytes;
    if (!bytes)
        return CLI_NONE;
    memcpy(bytes, name->bytes, name->length);
    bytes[name->length] = '\0';
    locks[blocked->lock_count] =
        (struct cli_blocked_lock){.name = {bytes, name->length, name->prefix}, .holder = CLI_NONE};
    return blocked->lock_count++;
}

/* The bytes are escaped for the map's key, which is a text. */
static size_t blocked_lock(struct cli_blocked *blocked, const struct cli_name *name)
{
    json_object *key = cli_escaped(name->bytes, name->length);
    const char *text = key ? json_object_get_string(key) : "";
    size_t at = blocked_place(blocked->lock_places, text);

    if (at == CLI_NONE) {
        at = blocked_add_lock(blocked, name);
        blocked_set_place(blocked->lock_places, text, at);
    }
    json_object_put(key);
    return at;
}

static bool blocked_knows(const struct cli_blocked *blocked, size_t waiter, size_t lock)
{
    for (size_t i = 0; i < blocked->wait_count; i++)
        if (blocked->waits[i].waiter == waiter && blocked->waits[i].lock == lock)
            return true;
    return false;
}

/* SCAN may tell a key twice. */
static void blocked_found(const struct cli_wait *wait, void *arg)
{
    struct cli_blocked *blocked = arg;
    char key[CLI_LABEL], label[CLI_LABEL];
    size_t owners = blocked->owner_count;

    blocked_write_owner(wait, key);
    snprintf(label, sizeof(label), "%s %lld%s%s", wait->host, wait->pid, wait->thread[0] ? " " : "",
             wait->thread);
    size_t waiter = blocked_owner(blocked, key, label), lock = blocked_lock(blocked, &wait->name);
    if (waiter == CLI_NONE || lock == CLI_NONE ||
        (waiter < owners && blocked_knows(blocked, waiter, lock)))
        return;
    struct cli_blocked_wait *waits =
        blocked_room(blocked, blocked->waits, blocked->wait_count, sizeof(*waits));
    if (!waits)
        return;
    blocked->waits = waits;
    waits[blocked->wait_count] =
        (struct cli_blocked_wait){.wait = *wait, .waiter = waiter, .lock = lock, .next = CLI_NONE};
    waits[blocked->wait_count++].wait.name = (struct cli_name){0}; /* the lock has it */
}

static void blocked_missed(const char *where, const hl_error *err, void *arg)
{
    struct cli_blocked *blocked = arg;

    cli_say("%s was not read: %s", where, err->text);
    if (blocked->unread == CLI_OK)
        blocked->unread = cli_status(err->code);
}

static const char *blocked_text(json_object *look, const char *key)
{
    return json_object_get_string(json_object_object_get(look, key));
}

/* A field begins with its client's id. A holder without a tag is known by its field only. */
static size_t blocked_holder(struct cli_blocked *blocked, size_t lock)
{
    json_object *look = blocked->locks[lock].look;
    const char *field = blocked_text(look, "owner"), *label = blocked_text(look, "holder");
    const char *number = blocked_text(look, "owner_number");
    char key[CLI_LABEL];

    if (!look || !field || !label)
        snprintf(key, sizeof(key), "lock %zu", lock);
    else if (number && strlen(field) > CLI_CLIENT_ID)
        snprintf(key, sizeof(key), "%.*s:%s", CLI_CLIENT_ID, field, number);
    else
        snprintf(key, sizeof(key), "%s", field);
    return blocked_owner(blocked, key, label ? label : "nobody at the moment");
}

/* NULL in *ret_look, too, if another program has the key by now. Returns a code of the library. */
static int blocked_look_at(const struct cli_blocked *blocked, const struct cli_name *name,
                           json_object **ret_look, hl_error *err)
{
    int rc = cli_look(blocked->client, name, ret_look, err);

    return rc == HL_EINVAL ? 0 : rc;
}

/* False when memory is out. */
static bool blocked_rename(struct cli_blocked_lock *lock, const struct cli_name *name)
{
    char *bytes = malloc(name->length + 1);

    if (!bytes)
        return false;
    memcpy(bytes, name->bytes, name->length);
    bytes[name->length] = '\0';
    free((char *)lock->name.bytes);
    lock->name = (struct cli_name){bytes, name->length, name->prefix};
    return true;
}

/* The keys beside "stock" and "{stock}" have the same names: a lock that is not there by the one
 * may be there by the other, which is its name then. Returns a code of the library. */
static int blocked_find(struct cli_blocked *blocked, struct cli_blocked_lock *lock, hl_error *err)
{
    bool may_be_braced =
        lock->name.prefix == 0 && !memchr(lock->name.bytes, '{', lock->name.length);
    char braced[CLI_LOOK_KEY];
    struct cli_name other = {braced, cli_name_derive(&lock->name, "", "", braced), 0};
    int rc = blocked_look_at(blocked, &lock->name, &lock->look, err);

    if (rc < 0 || lock->look || !may_be_braced || other.length == 0)
        return rc;
    rc = blocked_look_at(blocked, &other, &lock->look, err);
    if (lock->look && !blocked_rename(lock, &other))
        blocked->lacks_memory = true;
    return rc;
}

static int blocked_look(struct cli_blocked *blocked)
{
    hl_error err = HL_ERROR_INIT;

    for (size_t i = 0; i < blocked->lock_count; i++) {
        if (blocked_find(blocked, &blocked->locks[i], &err) < 0)
            return cli_failed(&err);
        size_t holder = blocked_holder(blocked, i);
        blocked->locks[i].holder = holder;
        if (holder == CLI_NONE)
            blocked->lacks_memory = true;
    }
    return CLI_OK;
}

/* Each wait is put to its holder; the longest of an owner is the one by which it is in the graph.
 */
static void blocked_join(struct cli_blocked *blocked)
{
    for (size_t i = 0; i < blocked->owner_count; i++) {
        struct cli_blocked_owner *owner = &blocked->owners[i];
        owner->wait = owner->first = CLI_NONE;
        owner->behind = owner->pending = 0;
        owner->deadlock = 0;
    }
    for (size_t i = 0; i < blocked->lock_count; i++)
        blocked->locks[i].is_awaited = false;
    for (size_t i = 0; i < blocked->wait_count; i++) {
        struct cli_blocked_wait *wait = &blocked->waits[i];
        size_t *own = &blocked->owners[wait->waiter].wait;
        if (!wait->is_over &&
            (*own == CLI_NONE || blocked->waits[*own].wait.since_ms > wait->wait.since_ms))
            *own = i;
    }
    for (size_t i = 0; i < blocked->wait_count; i++) {
        struct cli_blocked_wait *wait = &blocked->waits[i];
        struct cli_blocked_owner *holder = &blocked->owners[cli_blocked_holder(blocked, i)];
        if (wait->is_over)
            continue;
        cli_blocked_lock_of(blocked, i)->is_awaited = true;
        wait->next = holder->first;
        holder->first = i;
        holder->behind++;
        holder->pending += cli_blocked_is_first(blocked, i);
    }
}

/* An owner that nobody waits for is counted to the one for whom it waits, and taken away; and so
 * on. What is left are circles, because no owner waits for two. */
static void blocked_count(struct cli_blocked *blocked)
{
    for (size_t i = 0; i < blocked->owner_count; i++) {
        size_t at = i;
        while (at != CLI_NONE && blocked->owners[at].pending == 0) {
            struct cli_blocked_owner *owner = &blocked->owners[at];
            owner->pending = CLI_NONE; /* it is counted */
            if (owner->wait == CLI_NONE)
                break;
            at = cli_blocked_holder(blocked, owner->wait);
            blocked->owners[at].behind += owner->behind;
            blocked->owners[at].pending--;
        }
    }
}

static void blocked_number(struct cli_blocked *blocked)
{
    blocked->deadlocks = 0;
    for (size_t i = 0; i < blocked->owner_count; i++) {
        size_t at = i;
        if (blocked->owners[i].pending == CLI_NONE || blocked->owners[i].deadlock != 0)
            continue;
        blocked->deadlocks++;
        for (; blocked->owners[at].deadlock == 0;
             at = cli_blocked_holder(blocked, blocked->owners[at].wait)) {
            blocked->owners[at].deadlock = blocked->deadlocks;
            blocked->owners[at].behind--; /* the wait of the circle itself */
        }
    }
}

static void blocked_resolve(struct cli_blocked *blocked)
{
    blocked_join(blocked);
    blocked_count(blocked);
    blocked_number(blocked);
}

/* Reads a wait of a circle, and its holder, for the second time. */
static int blocked_confirm(struct cli_blocked *blocked, size_t at)
{
    struct cli_blocked_wait *wait = &blocked->waits[at];
    struct cli_blocked_lock *lock = cli_blocked_lock_of(blocked, at);
    json_object *now = NULL;
    hl_error err = HL_ERROR_INIT;

    int rc = blocked_look_at(blocked, &lock->name, &now, &err);
    const char *then = blocked_text(lock->look, "owner"), *by_now = blocked_text(now, "owner");
    bool is_same = then && by_now && strcmp(then, by_now) == 0;
    struct cli_wait again = wait->wait;
    bool goes_on = false;
    again.name = lock->name;
    if (is_same)
        rc = cli_wait_goes_on(blocked->client, &again, &goes_on, &err);
    wait->is_over = !goes_on;
    wait->is_confirmed = goes_on;
    json_object_put(now);
    return rc < 0 ? cli_failed(&err) : CLI_OK;
}

/* The waits of circles that have been read once. */
static int blocked_confirm_new(struct cli_blocked *blocked, bool *ret_is_any)
{
    int status = CLI_OK;

    *ret_is_any = false;
    for (size_t i = 0; status == CLI_OK && i < blocked->owner_count; i++) {
        const struct cli_blocked_owner *owner = &blocked->owners[i];
        if (owner->deadlock == 0 || blocked->waits[owner->wait].is_confirmed)
            continue;
        *ret_is_any = true;
        status = blocked_confirm(blocked, owner->wait);
    }
    return status;
}

/* When a wait is over, its owner is in the graph by another wait, which may close a circle that was
 * not seen before: that one is read again, too. All first readings are before the pause. */
static int blocked_confirm_all(struct cli_blocked *blocked)
{
    const struct timespec pause = {.tv_nsec = BLOCKED_AGAIN_MS * 1000000L};
    bool is_any = true;
    int status = CLI_OK;

    nanosleep(&pause, NULL);
    while (status == CLI_OK && is_any) {
        status = blocked_confirm_new(blocked, &is_any);
        blocked_resolve(blocked);
    }
    return status;
}

int cli_blocked_read(struct cli_blocked *blocked, hl_client *client, const char *prefix)
{
    *blocked = (struct cli_blocked){.client = client,
                                    .prefix = prefix,
                                    .lock_places = json_object_new_object(),
                                    .owner_places = json_object_new_object()};
    const struct cli_waits waits = {.client = client,
                                    .prefix = prefix,
                                    .found = blocked_found,
                                    .missed = blocked_missed,
                                    .arg = blocked,
                                    .denied = &blocked->denied};
    hl_error err = HL_ERROR_INIT;

    if (cli_waits(&waits, &err) < 0 && blocked->unread == CLI_OK)
        return cli_failed(&err);
    int status = blocked_look(blocked);
    if (status == CLI_OK && blocked->lacks_memory) {
        cli_say("there is no memory left");
        return CLI_FAILED;
    }
    if (status != CLI_OK)
        return status;
    blocked_resolve(blocked);
    return blocked->deadlocks > 0 ? blocked_confirm_all(blocked) : CLI_OK;
}

void cli_blocked_free(struct cli_blocked *blocked)
{
    for (size_t i = 0; i < blocked->lock_count; i++) {
        free((char *)blocked->locks[i].name.bytes);
        json_object_put(blocked->locks[i].look);
    }
    free(blocked->locks);
    free(blocked->owners);
    free(blocked->waits);
    json_object_put(blocked->lock_places);
    json_object_put(blocked->owner_places);
}
