/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* libpq's calls that do not block, with poll(): a server that hangs must not hang a thread that
 * holds a lock. */
#define _POSIX_C_SOURCE 200809L
#include "database.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DATABASE_TIMEOUT_MS = 5000 };

static int64_t database_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void database_note(struct database *database, const char *why, const char *state)
{
    /* libpq ends its texts with a newline. */
    snprintf(database->why, sizeof(database->why), "%.*s", (int)strcspn(why, "\n"), why);
    snprintf(database->state, sizeof(database->state), "%s", state ? state : "");
}

void database_close(struct database *database)
{
    PQfinish(database->connection);
    database->connection = NULL;
}

/* A commit that was answered must be on the disk, whatever the server's default is: a buyer has
 * been told. And a statement that nobody waits for any more should end. */
static const char database_settings[] = "SET synchronous_commit = on; SET statement_timeout = 5000";

static void database_on_notice(void *arg, const PGresult *notice)
{
    (void)arg, (void)notice; /* "relation exists, skipping" */
}

bool database_is_open(const struct database *database)
{
    return database->connection && PQstatus(database->connection) == CONNECTION_OK;
}

bool database_open(struct database *database, const char *url, const char *name)
{
    /* The later one wins, so DATABASE_URL may have its own timeout, but not its own name. */
    const char *const keys[] = {"connect_timeout", "dbname", "application_name", NULL};
    const char *const values[] = {"5", url, name, NULL};

    if (database_is_open(database))
        return true;
    database_close(database);
    database->connection = PQconnectdbParams(keys, values, 1);
    if (PQstatus(database->connection) != CONNECTION_OK) {
        database_note(database, PQerrorMessage(database->connection), NULL);
        database_close(database);
        return false;
    }
    PQsetNoticeReceiver(database->connection, database_on_notice, NULL);
    PGresult *set = database_run(database, database_settings, 0, NULL);
    PQclear(set);
    return set != NULL;
}

/* True: a result can be taken without waiting. */
static bool database_await(struct database *database, int64_t deadline_ms)
{
    while (PQisBusy(database->connection)) {
        struct pollfd socket = {.fd = PQsocket(database->connection), .events = POLLIN};
        int64_t left_ms = deadline_ms - database_now_ms();
        int ready = left_ms > 0 ? poll(&socket, 1, (int)left_ms) : 0;

        if (ready == 0) {
            database_note(database, "PostgreSQL does not answer", NULL);
            return false;
        }
        if (ready < 0 && errno != EINTR) {
            database_note(database, strerror(errno), NULL);
            return false;
        }
        if (ready > 0 && !PQconsumeInput(database->connection)) {
            database_note(database, PQerrorMessage(database->connection), NULL);
            return false;
        }
    }
    return true;
}

static bool database_is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The last result, or the first that is an error: the server stops there. */
static PGresult *database_take(struct database *database)
{
    int64_t deadline_ms = database_now_ms() + DATABASE_TIMEOUT_MS;
    PGresult *last = NULL;

    for (;;) {
        if (!database_await(database, deadline_ms)) {
            PQclear(last);
            database_close(database);
            return NULL;
        }
        PGresult *next = PQgetResult(database->connection);
        if (!next)
            return last;
        PQclear(last);
        last = next;
    }
}

PGresult *database_run(struct database *database, const char *sql, int count,
                       const char *const *values)
{
    int is_sent = count == 0 ? PQsendQuery(database->connection, sql)
                             : PQsendQueryParams(database->connection, sql, count, NULL, values,
                                                 NULL, NULL, 0);

    if (!is_sent) {
        database_note(database, PQerrorMessage(database->connection), NULL);
        database_close(database);
        return NULL;
    }
    PGresult *result = database_take(database);
    if (!result || database_is_good(result))
        return result;
    database_note(database, PQresultErrorMessage(result),
                  PQresultErrorField(result, PG_DIAG_SQLSTATE));
    PQclear(result);
    return NULL;
}
