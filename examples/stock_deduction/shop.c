/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The shop's data, by blocking calls of hiredis. */
#define _DEFAULT_SOURCE
#include "shop.h"

#include "address.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

struct shop {
    redisContext *redis;
    char stock_key[48], sold_key[48];
    char where[128]; /* for messages: no password in it */
    char error[320];
};

static const struct timeval shop_timeout = {.tv_sec = 5};

struct shop *shop_new(void)
{
    return calloc(1, sizeof(struct shop));
}

void shop_free(struct shop *shop)
{
    if (shop && shop->redis)
        redisFree(shop->redis);
    free(shop);
}

const char *shop_error(const struct shop *shop)
{
    return shop ? shop->error : "out of memory";
}

static bool shop_fail(struct shop *shop, const char *why)
{
    snprintf(shop->error, sizeof(shop->error), "the shop's data at %s: %s", shop->where, why);
    return false;
}

/* Takes the reply; NULL is what hiredis returns when the connection broke. */
static bool shop_take(struct shop *shop, redisReply *reply, int type)
{
    bool is_right = reply && reply->type == type;

    if (!reply)
        shop_fail(shop, shop->redis->errstr);
    else if (!is_right)
        shop_fail(shop, reply->type == REDIS_REPLY_ERROR ? reply->str : "an unexpected reply");
    if (reply)
        freeReplyObject(reply);
    return is_right;
}

static bool shop_greet(struct shop *shop, const struct address *address)
{
    redisReply *reply = NULL;

    if (address->user[0] != '\0')
        reply = redisCommand(shop->redis, "AUTH %s %s", address->user, address->password);
    else if (address->password[0] != '\0')
        reply = redisCommand(shop->redis, "AUTH %s", address->password);
    if (address->password[0] != '\0' && !shop_take(shop, reply, REDIS_REPLY_STATUS))
        return false;
    return shop_take(shop, redisCommand(shop->redis, "SELECT %d", address->db), REDIS_REPLY_STATUS);
}

bool shop_open(struct shop *shop, const char *url, long id)
{
    struct address address;

    snprintf(shop->stock_key, sizeof(shop->stock_key), "stock_deduction:%ld:stock", id);
    snprintf(shop->sold_key, sizeof(shop->sold_key), "stock_deduction:%ld:sold", id);
    snprintf(shop->where, sizeof(shop->where), "this URL");
    if (!address_read(&address, url))
        return shop_fail(shop, "it is neither redis://[user:password@]host[:port][/db] nor "
                               "unix:///path[?db=n]");
    if (address.path[0] != '\0')
        snprintf(shop->where, sizeof(shop->where), "%s", address.path);
    else
        snprintf(shop->where, sizeof(shop->where), "%.100s:%d", address.host, address.port);
    shop->redis = address.path[0] != '\0'
                      ? redisConnectUnixWithTimeout(address.path, shop_timeout)
                      : redisConnectWithTimeout(address.host, address.port, shop_timeout);
    if (!shop->redis)
        return shop_fail(shop, "out of memory");
    if (shop->redis->err)
        return shop_fail(shop, shop->redis->errstr);
    redisSetTimeout(shop->redis, shop_timeout);
    return shop_greet(shop, &address);
}

bool shop_fill(struct shop *shop, long stock)
{
    return shop_take(
        shop, redisCommand(shop->redis, "MSET %s %ld %s 0", shop->stock_key, stock, shop->sold_key),
        REDIS_REPLY_STATUS);
}

static bool shop_number(struct shop *shop, const char *key, long *ret_number)
{
    redisReply *reply = redisCommand(shop->redis, "GET %s", key);

    if (reply && reply->type == REDIS_REPLY_STRING)
        *ret_number = strtol(reply->str, NULL, 10);
    return shop_take(shop, reply, REDIS_REPLY_STRING);
}

bool shop_read(struct shop *shop, long *ret_left)
{
    return shop_number(shop, shop->stock_key, ret_left);
}

/* The next reply that was asked for. */
static bool shop_next(struct shop *shop, int type)
{
    void *reply = NULL;

    if (redisGetReply(shop->redis, &reply) != REDIS_OK)
        return shop_fail(shop, shop->redis->errstr);
    return shop_take(shop, reply, type);
}

/*
 * MULTI makes the two writes one, so that what was sold is true whatever happens between them. It
 * does not look at what the stock is by now: that is the lock's business.
 */
bool shop_write(struct shop *shop, long left, long quantity_sold)
{
    redisAppendCommand(shop->redis, "MULTI");
    redisAppendCommand(shop->redis, "SET %s %ld", shop->stock_key, left);
    redisAppendCommand(shop->redis, "INCRBY %s %ld", shop->sold_key, quantity_sold);
    redisAppendCommand(shop->redis, "EXEC");
    return shop_next(shop, REDIS_REPLY_STATUS) && shop_next(shop, REDIS_REPLY_STATUS) &&
           shop_next(shop, REDIS_REPLY_STATUS) && shop_next(shop, REDIS_REPLY_ARRAY);
}

bool shop_count(struct shop *shop, long *ret_left, long *ret_sold)
{
    return shop_number(shop, shop->stock_key, ret_left) &&
           shop_number(shop, shop->sold_key, ret_sold);
}

bool shop_clear(struct shop *shop)
{
    return shop_take(shop, redisCommand(shop->redis, "DEL %s %s", shop->stock_key, shop->sold_key),
                     REDIS_REPLY_INTEGER);
}
