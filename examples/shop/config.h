/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What the environment says: where the shop listens, what it sells, and its limits. */
#ifndef SHOP_CONFIG_H
#define SHOP_CONFIG_H

#include <stdbool.h>
#include <sys/socket.h>

enum { CONFIG_MAX_ARTICLES = 32, CONFIG_NAME_SIZE = 65 };

struct config_article {
    char name[CONFIG_NAME_SIZE];
    long long stock; /* when its row is made; a row that is there stays */
};

struct config {
    const char *database_url; /* "": the PG... variables, which libpq reads itself */
    struct sockaddr_storage listen;
    int listen_size;
    bool is_locked; /* false: the sale without a lock, which oversells */
    long workers, pool, queue, connections;
    long wait_ms;   /* the longest wait for an article's lock */
    long decide_ms; /* how long a sale thinks between its read and its write */
    int article_count;
    struct config_article articles[CONFIG_MAX_ARTICLES];
};

/* Prints what the variables mean. */
void config_help(void);

/* False: it has printed what is wrong, and what to write instead. */
bool config_read(struct config *config);

#endif
