/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* One connection to PostgreSQL, whose statements have a deadline. */
#ifndef SHOP_DATABASE_H
#define SHOP_DATABASE_H

#include <libpq-fe.h>

#include <stdbool.h>

/* Used by one thread at a time. */
struct database {
    PGconn *connection; /* NULL: none; database_open() makes one */
    char why[256];      /* of the last failure */
    char state[6];      /* its SQLSTATE, or "" when the server said nothing */
};

/* True if there is a connection that works, as far as is known. */
bool database_is_open(const struct database *database);
/* The same; without one it makes one. */
bool database_open(struct database *database, const char *url, const char *name);
void database_close(struct database *database);

/*
 * Runs one statement, or without values several. NULL: it failed, and says why. Without an answer
 * in time the connection is closed, for nobody knows whether the statement has run.
 */
PGresult *database_run(struct database *database, const char *sql, int count,
                       const char *const *values);

#endif
