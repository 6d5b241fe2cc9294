/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The environment, each variable checked: a shop that starts with a wrong setting is found out by
 * its buyers. */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <errno.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* The variables that are numbers. */
static const struct number {
    const char *name, *means;
    size_t at; /* in struct config */
    long fallback, min, max;
} config_numbers[] = {
    {"SHOP_WORKERS", "threads that sell", offsetof(struct config, workers), 8, 1, 256},
    {"SHOP_POOL", "connections to PostgreSQL that they share", offsetof(struct config, pool), 4, 1,
     100},
    {"SHOP_QUEUE", "orders that may wait for a thread", offsetof(struct config, queue), 1000, 1,
     100000},
    {"SHOP_CONNECTIONS", "descriptors, from which on nobody is let in",
     offsetof(struct config, connections), 1000, 50, 100000},
    {"SHOP_WAIT_MS", "the longest wait for an article's lock", offsetof(struct config, wait_ms),
     10000, 1, 600000},
    {"SHOP_DECIDE_MS", "how long a sale thinks between read and write",
     offsetof(struct config, decide_ms), 0, 0, 10000},
};

enum { CONFIG_NUMBERS = sizeof(config_numbers) / sizeof(*config_numbers) };

void config_help(void)
{
    printf("usage: shop\n"
           "\n"
           "A web shop that never sells what it does not have, however many of it run.\n"
           "It prints its address. At SIGINT or SIGTERM it answers its buyers, and ends.\n"
           "\n"
           "  HIRELOCK_URL      the Redis of the locks; its options are HIRELOCK_..., too\n"
           "  DATABASE_URL      the PostgreSQL of stock and orders; without it PGHOST ...\n"
           "  SHOP_LISTEN       ADDRESS:PORT, port 0 for a free one (127.0.0.1:8080)\n"
           "  SHOP_ARTICLES     NAME:STOCK,NAME:STOCK...; one that is known keeps its stock\n"
           "  SHOP_LOCK         on, or off: to see what happens then (on)\n");
    for (size_t i = 0; i < CONFIG_NUMBERS; i++)
        printf("  %-16s  %s (%ld)\n", config_numbers[i].name, config_numbers[i].means,
               config_numbers[i].fallback);
}

static bool config_fail(const char *name, const char *value, const char *wanted)
{
    fprintf(stderr, "shop: %s is '%s', which is not %s\n", name, value, wanted);
    return false;
}

/* A whole number, with nothing behind it. */
static bool config_parse(const char *text, long long min, long long max, long long *ret_value)
{
    char *end = NULL;

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

static bool config_number(struct config *config, const struct number *number)
{
    const char *text = getenv(number->name);
    long long value = number->fallback;
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "a number from %ld to %ld", number->min, number->max);
    if (text && !config_parse(text, number->min, number->max, &value))
        return config_fail(number->name, text, wanted);
    *(long *)(void *)((char *)config + number->at) = (long)value;
    return true;
}

/* ADDRESS of ADDRESS:PORT, without the brackets of IPv6. */
static bool config_host(const char *text, size_t length, char *host, size_t size)
{
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= size)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    return true;
}

static bool config_listen(struct config *config)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *text = getenv("SHOP_LISTEN");
    char host[64];
    long long port = 0;

    text = text ? text : "127.0.0.1:8080";
    const char *colon = strrchr(text, ':');
    if (!colon || !config_parse(colon + 1, 0, 65535, &port) ||
        !config_host(text, (size_t)(colon - text), host, sizeof(host)) ||
        getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return config_fail("SHOP_LISTEN", text, "ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:8080");
    config->listen_size = (int)found->ai_addrlen;
    memcpy(&config->listen, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

static bool config_lock(struct config *config)
{
    const char *text = getenv("SHOP_LOCK");

    config->is_locked = !text || strcmp(text, "on") == 0;
    return config->is_locked || strcmp(text, "off") == 0 ||
           config_fail("SHOP_LOCK", text, "on or off");
}

static bool config_article(struct config *config, char *text)
{
    static const char wanted[] = "NAME:STOCK, with a name of 1 to 64 bytes that is there once";
    struct config_article *article = &config->articles[config->article_count];
    char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;

    if (length == 0 || length >= CONFIG_NAME_SIZE ||
        !config_parse(colon + 1, 0, 1000000000, &article->stock))
        return config_fail("a part of SHOP_ARTICLES", text, wanted);
    memcpy(article->name, text, length);
    article->name[length] = '\0';
    for (int i = 0; i < config->article_count; i++)
        if (strcmp(config->articles[i].name, article->name) == 0)
            return config_fail("a part of SHOP_ARTICLES", text, wanted);
    config->article_count++;
    return true;
}

static bool config_articles(struct config *config)
{
    const char *text = getenv("SHOP_ARTICLES");
    char *list = strdup(text ? text : "lamp:100,chair:50,table:20");
    char *rest = NULL;
    bool is_good = list;

    for (char *part = list ? strtok_r(list, ",", &rest) : NULL; part && is_good;
         part = strtok_r(NULL, ",", &rest))
        is_good = config->article_count < CONFIG_MAX_ARTICLES
                      ? config_article(config, part)
                      : config_fail("SHOP_ARTICLES", text, "a list of at most 32");
    free(list);
    return is_good &&
           (config->article_count > 0 || config_fail("SHOP_ARTICLES", text, "a list of articles"));
}

static bool config_database(struct config *config)
{
    char *why = NULL;

    config->database_url = getenv("DATABASE_URL");
    if (!config->database_url)
        config->database_url = "";
    PQconninfoOption *options = PQconninfoParse(config->database_url, &why);
    if (!options) /* the text names the option, and never the password */
        fprintf(stderr, "shop: DATABASE_URL: %s", why ? why : "out of memory\n");
    PQfreemem(why);
    PQconninfoFree(options);
    return options != NULL;
}

static bool config_is_known(const char *name, size_t length)
{
    static const char *const words[] = {"SHOP_LISTEN", "SHOP_ARTICLES", "SHOP_LOCK"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strlen(words[i]) == length && memcmp(words[i], name, length) == 0)
            return true;
    for (size_t i = 0; i < CONFIG_NUMBERS; i++)
        if (strlen(config_numbers[i].name) == length &&
            memcmp(config_numbers[i].name, name, length) == 0)
            return true;
    return false;
}

/* A misspelt variable would be a setting that does nothing. */
static bool config_has_only_known(void)
{
    for (char **entry = environ; *entry; entry++) {
        size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, "SHOP_", 5) == 0 && !config_is_known(*entry, length)) {
            fprintf(stderr, "shop: %.*s is no variable of the shop; see --help\n", (int)length,
                    *entry);
            return false;
        }
    }
    return true;
}

bool config_read(struct config *config)
{
    *config = (struct config){.article_count = 0};
    for (size_t i = 0; i < CONFIG_NUMBERS; i++)
        if (!config_number(config, &config_numbers[i]))
            return false;
    if (!getenv("HIRELOCK_URL")) {
        fprintf(stderr, "shop: HIRELOCK_URL is not set: redis://HOST, unix:///PATH or others\n");
        return false;
    }
    return config_has_only_known() && config_listen(config) && config_lock(config) &&
           config_articles(config) && config_database(config);
}
