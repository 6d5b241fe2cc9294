/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The exporter's HTTP server: GET and HEAD of a few pages, by libevent. Clients that are slow, many
 * or wrong do not stop it: a connection that is silent is closed, what is read ahead of one has a
 * bound, and the connections have a bound.
 */
#ifndef CLI_EXPORTER_PAGES_H
#define CLI_EXPORTER_PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct exporter_page {
    const char *path, *type; /* type: Content-Type */
    /* Owned by the caller, from malloc(); NULL: it cannot be told now. */
    char *(*write)(void *arg, size_t *ret_length);
};

struct exporter_pages {
    const struct exporter_page *page;
    size_t count;
    void *arg;
};

/* A socket that listens at "HOST:PORT", "[::1]:PORT" or "PORT", which is 127.0.0.1's. Port 0: one
 * that is free. -1: it has said why not. */
int exporter_listen(const char *where);

/* Prints the address of the socket, takes the socket over, and serves until SIGINT or SIGTERM.
 * False: it has said why it cannot. */
bool exporter_serve(int socket, const struct exporter_pages *pages);

#endif
