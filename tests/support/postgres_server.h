/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A real PostgreSQL server (support/postgres), in a temporary directory of its own. It dies with
 * the thread that started it. A failure of the server or of an SQL statement ends the test.
 */
#ifndef HL_TEST_POSTGRES_SERVER_H
#define HL_TEST_POSTGRES_SERVER_H

#include <stdint.h>

struct postgres_server;
struct postgres_link;

/* Skips the test if PostgreSQL is not installed, or if the tests were built without libpq. */
struct postgres_server *postgres_server_start(void);
void postgres_server_stop(struct postgres_server *server);             /* NULL is accepted */
const char *postgres_server_dir(const struct postgres_server *server); /* of its socket */

struct postgres_link *postgres_open(const char *dir);
void postgres_close(struct postgres_link *link);

/* Runs one statement; the format is printf's, without quoting. Returns the number of rows that it
 * changed or returned. */
int postgres_do(struct postgres_link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first column of the only row, borrowed until the next statement; "" without a row. */
const char *postgres_str(struct postgres_link *link, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
