/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Where the servers are and how to log in, read from a URL. Pure: no I/O. */
#ifndef HLI_REDIS_URL_H
#define HLI_REDIS_URL_H

#include "redis/login.h"

#include <hirelock/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where one server listens. */
struct hli_address {
    char *host;    /* owned: a name or a numeric address; of a unix socket its path */
    uint16_t port; /* 0: a unix socket */
};

enum hli_url_kind {
    HLI_URL_SERVER,   /* one server */
    HLI_URL_SENTINEL, /* the addresses are those of sentinels, which know the server `service` */
    HLI_URL_CLUSTER,  /* the addresses are those of some nodes of a cluster */
};

/* All strings are owned; service may be NULL. */
struct hli_url {
    enum hli_url_kind kind;
    bool has_tls; /* rediss:// */
    struct hli_address *addresses;
    size_t address_count; /* at least 1 */
    char *service;
    uint32_t database;
    struct hli_login login;          /* of the servers that have the data */
    struct hli_login sentinel_login; /* not from the URL, but from the options */
    char *query;                     /* an owned secret: the words behind `?`; NULL: none */
};

/* redis://[user[:password]@]host[:port][/db], redis://:password@host, unix:///path[?db=n],
 * redis-sentinel://[user:password@]host[:port],host.../service[?db=n],
 * redis-cluster://[user:password@]host[:port],host..., each with rediss for TLS and valkey for
 * redis; behind each may stand ?name=value&name=value; see hl_client_open(). Errors: HL_EINVAL,
 * HL_ENOMEM; their text never repeats the URL, which may contain a password. */
int hli_url_parse(const char *text, struct hli_url *ret_url, hl_error *err);

/* Calls `visit` for each word of the query but db, as name=value, both decoded, until it returns an
 * error. Errors: HL_EINVAL (no such form, or not percent-encoded), HL_ENOMEM; those of `visit`. */
int hli_url_query(const struct hli_url *url,
                  int (*visit)(const char *name, const char *value, void *arg, hl_error *err),
                  void *arg, hl_error *err);

/* Wipes the secrets before it frees them. */
void hli_url_deinit(struct hli_url *url);

/* A copy of the address. Errors: HL_ENOMEM, or HL_EINVAL for a host that is none; *ret_address is
 * not changed then. */
int hli_address_init(struct hli_address *ret_address, const char *host, uint16_t port);
void hli_address_deinit(struct hli_address *address);
bool hli_address_is(const struct hli_address *address, const char *host, uint16_t port);

/* "127.0.0.1:6379", "[::1]:6379", or a path, for messages. */
enum { HLI_WHERE_SIZE = 272 };
void hli_address_where(const struct hli_address *address, char text[HLI_WHERE_SIZE]);

#endif
