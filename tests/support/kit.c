/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Clients, handles and expectations of tests, and the list of objects to be closed at the end. */

#include "kit.h"

#include "actor.h"
#include "handle.h"
#include "kinds.h"
#include "proxy.h"
#include "shared_servers.h"

#include <pthread.h>

struct redis_server *server;
const char *clients_url;

enum kind { CLIENT_OPEN, LOCK, OWNER, CANCEL, PROXY, OTHER, SERVERS, KINDS };
enum { LIMIT = 2048 };

static struct {
    pthread_mutex_t mutex;
    void *item[KINDS][LIMIT];
    void (*free_item[KINDS][LIMIT])(void *item); /* of the others, and of servers */
    int count[KINDS];
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *list_add(enum kind kind, void *item)
{
    pthread_mutex_lock(&list.mutex);
    check(list.count[kind] < LIMIT);
    list.item[kind][list.count[kind]++] = item;
    pthread_mutex_unlock(&list.mutex);
    return item;
}

static void list_remove(enum kind kind, const void *item)
{
    pthread_mutex_lock(&list.mutex);
    for (int i = 0; i < list.count[kind]; i++)
        if (list.item[kind][i] == item) {
            list.item[kind][i] = list.item[kind][--list.count[kind]];
            break;
        }
    pthread_mutex_unlock(&list.mutex);
}

void server_up_with(const struct redis_options *options)
{
    if (shared_servers_wanted() == SHARED_NONE)
        server = redis_server_start(options);
    else if (options)
        skip("left out: it needs a server with options of its own");
    else
        shared_servers_join();
}

void server_up(void)
{
    server_up_with(NULL);
}

void server_up_single(void)
{
    if (shared_servers_wanted() != SHARED_NONE)
        skip("left out: it is about one server");
    server_up();
}

void server_up_tcp(void)
{
    server_up_with(&(struct redis_options){.tcp = true});
}

void server_down(void)
{
    actors_stop();
    for (int i = 0; i < list.count[PROXY]; i++)
        proxy_pass(list.item[PROXY][i]);
    for (int i = list.count[LOCK] - 1; i >= 0; i--) /* a multi-lock before its members */
        hl_lock_free(list.item[LOCK][i]);
    for (int i = 0; i < list.count[OTHER]; i++)
        list.free_item[OTHER][i](list.item[OTHER][i]);
    for (int i = 0; i < list.count[OWNER]; i++)
        hl_owner_free(list.item[OWNER][i]);
    for (int i = 0; i < list.count[CLIENT_OPEN]; i++)
        hl_client_close(list.item[CLIENT_OPEN][i]);
    for (int i = 0; i < list.count[CANCEL]; i++)
        hl_cancel_free(list.item[CANCEL][i]);
    for (int i = 0; i < list.count[PROXY]; i++)
        proxy_stop(list.item[PROXY][i]);
    for (int i = list.count[SERVERS] - 1; i >= 0; i--)
        list.free_item[SERVERS][i](list.item[SERVERS][i]);
    redis_server_stop(server);
}

/* A server or a thread that stands still for a while does not end a link; and the authority of a
 * server with TLS. */
static const hl_client_options *kit_complete(hl_client_options *own,
                                             const hl_client_options *options, const char *url)
{
    if (options)
        *own = *options;
    if (own->connect_timeout_ms == 0)
        own->connect_timeout_ms = slow_ms(10000);
    if (own->request_timeout_ms == 0)
        own->request_timeout_ms = patience_ms(6000);
    if (own->outage_timeout_ms == 0)
        own->outage_timeout_ms = slow_ms(10000);
    if (strncmp(url, "rediss://", 9) == 0 && !own->tls_ca_file && !own->tls_ca_dir)
        own->tls_ca_file = redis_server_authority();
    return own;
}

hl_client *open_client_at(const char *url, const hl_client_options *options)
{
    hl_client_options own = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    if (!options || options->size == sizeof own)
        options = kit_complete(&own, options, url);
    int rc = hl_client_open(url, options, &client, &err);
    check_msg(rc == 0, "open: %s: %s", hl_err_name(rc), err.text);
    return list_add(CLIENT_OPEN, client);
}

hl_client *open_client(const hl_client_options *options)
{
    return open_client_at(clients_url ? clients_url : redis_server_url(server), options);
}

hl_lock *new_lock(hl_client *client, const char *name)
{
    hl_lock *lock = NULL;
    expect_ok(handle_new(client, name, &lock, NULL));
    return keep_lock(lock);
}

hl_lock *new_lock_with(hl_client *client, const char *name, const hl_lock_options *options)
{
    hl_lock *lock = NULL;
    expect_ok(lock_new_of(client, LOCK_NAMED(options->kind, name), options, &lock, NULL));
    return keep_lock(lock);
}

hl_lock *keep_lock(hl_lock *lock)
{
    return list_add(LOCK, lock);
}

hl_owner *new_owner(hl_client *client)
{
    hl_owner *owner = NULL;
    expect_ok(hl_owner_new(client, &owner));
    return list_add(OWNER, owner);
}

hl_cancel *new_cancel(void)
{
    hl_cancel *cancel = NULL;
    expect_ok(hl_cancel_new(&cancel));
    return list_add(CANCEL, cancel);
}

struct proxy *new_proxy(void)
{
    return list_add(PROXY, proxy_start_before(server));
}

static void *list_add_with(enum kind kind, void *item, void (*free_item)(void *item))
{
    pthread_mutex_lock(&list.mutex);
    check(list.count[kind] < LIMIT);
    list.free_item[kind][list.count[kind]] = free_item;
    list.item[kind][list.count[kind]++] = item;
    pthread_mutex_unlock(&list.mutex);
    return item;
}

void *free_at_end(void *item, void (*free_item)(void *item))
{
    return list_add_with(OTHER, item, free_item);
}

void *stop_at_end(void *item, void (*stop)(void *item))
{
    return list_add_with(SERVERS, item, stop);
}

void close_client(hl_client *client)
{
    list_remove(CLIENT_OPEN, client);
    expect_ok(hl_client_close(client));
}

void free_lock(hl_lock *lock)
{
    list_remove(LOCK, lock);
    hl_lock_free(lock);
}

void free_owner(hl_owner *owner)
{
    list_remove(OWNER, owner);
    hl_owner_free(owner);
}

void free_proxy(struct proxy *proxy)
{
    list_remove(PROXY, proxy);
    proxy_stop(proxy);
}

static _Thread_local hl_error kit_error;

hl_error *kit_err(void)
{
    kit_error = (hl_error)HL_ERROR_INIT;
    return &kit_error;
}

void kit_expect_outcome(const struct hl_test_place *place, int actual, int expected)
{
    if (actual != expected)
        hl_test_fail(place->file, place->line, "%s is %s, expected %s%s%s", place->what,
                     hl_err_name(actual), hl_err_name(expected), kit_error.text[0] ? ": " : "",
                     kit_error.text);
    kit_err();
}

struct held {
    hl_client *client;
    hl_lock *lock;
    int count;
};

static bool is_held_as_told(void *arg)
{
    const struct held *held = arg;
    size_t length = 0;
    const char *name = hl_lock_name(held->lock, &length);
    const char *all = redis_str(server, "HGETALL %b", name, length);
    const char *id = hl_client_id(held->client);
    const char *space = strchr(all, ' ');
    return strncmp(all, id, strlen(id)) == 0 && all[strlen(id)] == ':' && space &&
           strchr(space + 1, ' ') == NULL && strtol(space + 1, NULL, 10) == held->count;
}

void expect_held_by(hl_client *client, hl_lock *lock, int count)
{
    struct held held = {client, lock, count};
    size_t length = 0;
    const char *name = hl_lock_name(lock, &length);
    check_msg(wait_until(is_held_as_told, &held, 5000), "expected %s:... %d, there is %s",
              hl_client_id(client), count, redis_str(server, "HGETALL %b", name, length));
}

void expect_free(hl_lock *lock)
{
    size_t length = 0;
    const char *name = hl_lock_name(lock, &length);
    check(redis_wait_int(server, 0, 5000, "EXISTS %b", name, length));
}

const char *field_of(hl_lock *lock)
{
    size_t length = 0;
    const char *name = hl_lock_name(lock, &length);
    const char *fields = redis_str(server, "HKEYS %b", name, length);
    return fields[0] ? fields : "(nil)";
}

int64_t pttl_of(hl_lock *lock)
{
    size_t length = 0;
    const char *name = hl_lock_name(lock, &length);
    return redis_int(server, "PTTL %b", name, length);
}

hl_stats stats_of(hl_client *client)
{
    hl_stats stats = {.size = sizeof stats};
    expect_ok(hl_client_stats(client, &stats));
    return stats;
}

struct stat_wait {
    hl_client *client;
    size_t offset;
    uint64_t n;
    bool exactly;
};

static bool stat_is_there(void *arg)
{
    const struct stat_wait *wait = arg;
    hl_stats stats = stats_of(wait->client);
    uint64_t value;
    memcpy(&value, (const char *)&stats + wait->offset, sizeof value);
    return wait->exactly ? value == wait->n : value >= wait->n;
}

bool wait_stat_at(hl_client *client, size_t offset, uint64_t n)
{
    return wait_until(stat_is_there, &(struct stat_wait){client, offset, n, false}, 10000);
}

void expect_waiters(hl_client *client, int n)
{
    struct stat_wait wait = {client, offsetof(hl_stats, waiters_now), (uint64_t)n, true};
    check(wait_until(stat_is_there, &wait, 10000));
}
