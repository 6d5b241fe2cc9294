/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Where the server is and how to log in, read from a URL. Pure: no I/O. */
#ifndef HLI_REDIS_URL_H
#define HLI_REDIS_URL_H

#include <hirelock/error.h>

#include <stdbool.h>
#include <stdint.h>

enum hli_url_kind { HLI_URL_TCP, HLI_URL_UNIX };

/* All strings are owned; username and password may be NULL. */
struct hli_url {
    enum hli_url_kind kind;
    bool has_tls; /* rediss:// */
    char *host;   /* of TCP: a name or a numeric address; of UNIX: the path */
    uint16_t port;
    uint32_t database;
    char *username, *password;
};

/* redis://[user[:password]@]host[:port][/db], redis://:password@host, unix:///path[?db=n], and
 * valkey:// for redis://; see hl_client_open(). Errors: HL_EINVAL, HL_ENOTSUP, HL_ENOMEM; their
 * text never repeats the URL, which may contain a password. */
int hli_url_parse(const char *text, struct hli_url *ret_url, hl_error *err);

/* Wipes the secrets before it frees them. */
void hli_url_deinit(struct hli_url *url);

/* Wipes the secret before it frees it. NULL is fine. */
void hli_secret_free(char *secret);

/* "127.0.0.1:6379", "[::1]:6379", or a path, for messages. */
void hli_url_where(const struct hli_url *url, char *text, size_t size);

#endif
