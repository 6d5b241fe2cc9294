/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A web shop of many processes that sells nothing twice: one event loop in front, threads that sell
 * behind, locks in Redis, stock and orders in PostgreSQL. --help lists the settings.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"
#include "crew.h"
#include "http.h"
#include "report.h"
#include "store.h"

#include <hirelock/hirelock.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shop {
    struct config config;
    hl_client *client;
    struct pool *pool;
    struct sale sale;
    struct bell bell;
    struct crew crew;
    struct report *report;
    struct event_base *loop;
    struct http http;
    struct event *ends[2]; /* SIGINT, SIGTERM */
};

static void shop_log(hl_log_level level, const char *text, void *arg)
{
    (void)arg;
    fprintf(stderr, "shop: locks: %s: %s\n", hl_log_level_name(level), text);
}

/* A hold that is lost needs no answer here: its token makes the row refuse what its sale writes. */
static void shop_on_event(const hl_event *event, void *arg)
{
    (void)arg;
    if (event->kind == HL_EVENT_LOST)
        fprintf(stderr, "shop: the lock %s is lost: %s\n", event->name, event->reason);
}

/* The first one closes the shop. The second one also ends the waits, and the queue: those buyers
 * are told to come again. Sales that have their lock go on in both cases. */
static void shop_on_signal(evutil_socket_t number, short what, void *arg)
{
    struct shop *shop = arg;

    (void)number, (void)what;
    if (shop->http.is_closing)
        sale_hurry(&shop->sale);
    http_close(&shop->http);
}

static bool shop_open_locks(struct shop *shop)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_error err = HL_ERROR_INIT;

    options.flags = HL_CLIENT_ENVIRONMENT | HL_CLIENT_HOLDER_INFO | HL_CLIENT_RELEASE_ON_CLOSE;
    options.client_name = "shop";
    options.on_event = shop_on_event;
    options.on_log = shop_log;
    if (hl_client_open(NULL, &options, &shop->client, &err) == 0)
        return true;
    fprintf(stderr, "shop: %s\n", err.text);
    return false;
}

/* Each session has the process's id as its name, by which the page knows whether it lives. */
static bool shop_open_store(struct shop *shop, const char *session)
{
    char why[ORDER_WHY_SIZE];
    hl_error err = HL_ERROR_INIT;

    shop->pool = pool_new(shop->config.pool, shop->config.database_url, session);
    if (!shop->pool) {
        fprintf(stderr, "shop: out of memory\n");
        return false;
    }
    struct database *database = pool_take(shop->pool, why, sizeof(why));
    bool is_good = database && store_prepare(database, &shop->config);
    if (!is_good)
        fprintf(stderr, "shop: PostgreSQL: %s\n", database ? database->why : why);
    if (database)
        pool_give(shop->pool, database);
    if (is_good && sale_init(&shop->sale, &shop->config, shop->client, shop->pool, &err) < 0) {
        fprintf(stderr, "shop: SHOP_ARTICLES: %s\n", err.text);
        return false;
    }
    return is_good;
}

static bool shop_open_front(struct shop *shop)
{
    shop->loop = event_base_new();
    if (!shop->loop || !bell_open(&shop->bell)) {
        perror("shop: the event loop");
        return false;
    }
    if (!http_open(&shop->http, shop->loop, &shop->config, &shop->bell))
        return false;
    for (int i = 0; i < 2; i++) {
        shop->ends[i] = evsignal_new(shop->loop, i == 0 ? SIGINT : SIGTERM, shop_on_signal, shop);
        if (!shop->ends[i] || event_add(shop->ends[i], NULL) != 0)
            return false;
    }
    return true;
}

static void shop_run(struct shop *shop)
{
    http_serve(&shop->http, &shop->crew, shop->report);
    printf("http://%s/\n", shop->http.door.address);
    fflush(stdout);
    event_base_dispatch(shop->loop);
}

/* Threads first: until they have ended, they use all the rest. */
static bool shop_sell(struct shop *shop)
{
    bool is_good = crew_start(&shop->crew, &shop->sale, &shop->bell);

    if (is_good)
        shop->report = report_start(&shop->sale, shop->http.door.address, &shop->bell);
    if (is_good && shop->report)
        shop_run(shop);
    else
        fprintf(stderr, "shop: no thread can be started\n");
    is_good = shop->report != NULL;
    crew_finish(&shop->crew);
    report_stop(shop->report);
    crew_deinit(&shop->crew);
    return is_good;
}

static void shop_close(struct shop *shop)
{
    http_deinit(&shop->http);
    for (int i = 0; i < 2; i++)
        if (shop->ends[i])
            event_free(shop->ends[i]);
    if (shop->loop)
        event_base_free(shop->loop);
    bell_close(&shop->bell);
    hl_client_close(shop->client); /* releases what is held */
    sale_deinit(&shop->sale);
    pool_free(shop->pool);
}

int main(int argc, char **argv)
{
    static struct shop shop = {.bell = {-1}};
    char session[64];
    bool is_good = false;

    if (argc > 1) {
        bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        if (is_help)
            config_help();
        else
            fprintf(stderr, "shop: %s is no option; the settings are variables, see --help\n",
                    argv[1]);
        return is_help ? EXIT_SUCCESS : 2;
    }
    if (!config_read(&shop.config))
        return 2;
    signal(SIGPIPE, SIG_IGN); /* a buyer who has left is an error of write() */
    if (shop_open_locks(&shop)) {
        snprintf(session, sizeof(session), "shop %s", hl_client_id(shop.client));
        is_good = shop_open_store(&shop, session) && shop_open_front(&shop) && shop_sell(&shop);
    }
    shop_close(&shop);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
