/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Orders from JSON. Each field is checked before a thread is troubled with it. */
#include "order.h"

#include <json-c/json.h>
#include <string.h>

enum { ORDER_MAX_QUANTITY = 1000, ORDER_DEPTH = 4 };

static const char order_id_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_.";

static int order_refuse(int status, const char *why, const char **ret_why)
{
    *ret_why = why;
    return status;
}

/* A string of JSON may have a NUL inside, so its length is compared as well. */
static bool order_read_id(struct order *order, json_object *field)
{
    if (!json_object_is_type(field, json_type_string))
        return false;
    const char *text = json_object_get_string(field);
    size_t length = (size_t)json_object_get_string_len(field);

    if (length == 0 || length >= ORDER_ID_SIZE || strspn(text, order_id_bytes) != length)
        return false;
    memcpy(order->id, text, length + 1);
    return true;
}

static bool order_read_article(struct order *order, const struct config *config, json_object *field)
{
    if (!json_object_is_type(field, json_type_string))
        return false;
    const char *text = json_object_get_string(field);
    size_t length = (size_t)json_object_get_string_len(field);

    for (int i = 0; i < config->article_count; i++)
        if (strlen(config->articles[i].name) == length &&
            memcmp(config->articles[i].name, text, length) == 0) {
            order->article = i;
            return true;
        }
    return false;
}

static bool order_read_quantity(struct order *order, json_object *field)
{
    if (!json_object_is_type(field, json_type_int))
        return false;
    order->quantity = json_object_get_int64(field); /* one that is too large becomes the largest */
    return order->quantity >= 1 && order->quantity <= ORDER_MAX_QUANTITY;
}

static int order_read(const struct config *config, json_object *json, struct order *order,
                      const char **ret_why)
{
    if (!json_object_is_type(json, json_type_object))
        return order_refuse(400, "the body is not an object of JSON", ret_why);
    if (!order_read_id(order, json_object_object_get(json, "order")))
        return order_refuse(400, "order: 1 to 64 letters, digits, '-', '_' or '.', chosen by you",
                            ret_why);
    if (!order_read_quantity(order, json_object_object_get(json, "quantity")))
        return order_refuse(400, "quantity: a whole number from 1 to 1000", ret_why);
    if (!order_read_article(order, config, json_object_object_get(json, "article")))
        return order_refuse(404, "article: the shop does not have it", ret_why);
    return 0;
}

int order_parse(const struct config *config, const char *text, size_t length, struct order *order,
                const char **ret_why)
{
    json_tokener *tokener = json_tokener_new_ex(ORDER_DEPTH);
    json_object *json = NULL;

    if (!tokener)
        return order_refuse(503, "out of memory", ret_why);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    if (length > 0)
        json = json_tokener_parse_ex(tokener, text, (int)length);
    int status = json ? order_read(config, json, order, ret_why)
                      : order_refuse(400, "the body is not JSON", ret_why);
    json_object_put(json);
    json_tokener_free(tokener);
    return status;
}

const char *answer_text(enum answer answer)
{
    switch (answer) {
    case ANSWER_SOLD:
        return "sold";
    case ANSWER_SOLD_OUT:
        return "sold out";
    case ANSWER_OTHER_ORDER:
        return "this id is another order's";
    case ANSWER_TRY_AGAIN:
        break;
    }
    return "try again with the same id";
}

int answer_status(enum answer answer)
{
    switch (answer) {
    case ANSWER_SOLD:
        return 200;
    case ANSWER_SOLD_OUT:
        return 409;
    case ANSWER_OTHER_ORDER:
        return 422;
    case ANSWER_TRY_AGAIN:
        break;
    }
    return 503;
}
