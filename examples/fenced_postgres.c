/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A write that comes too late, and the database that refuses it. Two machines work on an account,
 * one at a time by a lock in Redis; the account itself is a row in PostgreSQL. One of the machines
 * stands still for longer than its lease, and goes on when the other has been inside.
 *
 * fenced_postgres [REDIS-URL [CONNINFO]]
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <hirelock/hirelock.h>

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* For this session only, so that the example leaves no table. */
static const char account[] =
    "CREATE TEMPORARY TABLE account ("
    "  id int PRIMARY KEY,"
    "  balance bigint NOT NULL,"
    "  token bigint NOT NULL DEFAULT 0);" /* the largest that has written */
    "INSERT INTO account VALUES (7, 100)";

enum verdict { WRITTEN, REFUSED, FAILED };

/* The row changes only for a token that is not smaller than the one it has seen. */
static enum verdict account_write(PGconn *db, int64_t balance, uint64_t token)
{
    char numbers[2][24];
    const char *values[] = {numbers[0], numbers[1]};

    snprintf(numbers[0], sizeof(numbers[0]), "%" PRId64, balance);
    snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, token);
    PGresult *result = PQexecParams(db,
                                    "UPDATE account SET balance = $1, token = $2"
                                    " WHERE id = 7 AND token <= $2",
                                    2, NULL, values, NULL, NULL, 0);
    bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
    bool is_written = strcmp(PQcmdTuples(result), "1") == 0; /* rows that were changed */
    PQclear(result);
    return !is_done ? FAILED : is_written ? WRITTEN : REFUSED;
}

static const char *verdict_text(PGconn *db, enum verdict verdict)
{
    return verdict == WRITTEN ? "written" : verdict == REFUSED ? "refused" : PQerrorMessage(db);
}

static int64_t account_read(PGconn *db)
{
    PGresult *result = PQexec(db, "SELECT balance FROM account WHERE id = 7");
    int64_t balance = PQntuples(result) == 1 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : -1;

    PQclear(result);
    return balance;
}

/* A machine has a client of its own, and here a share in one connection to the database. */
struct machine {
    hl_client *client;
    hl_lock *lock;
};

static int machine_start(struct machine *machine, const char *url, hl_error *err)
{
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;
    int rc = hl_client_open(url, NULL, &machine->client, err);

    options.kind = HL_LOCK_FENCED;
    options.name = "account:7";
    return rc < 0 ? rc : hl_lock_new_with(machine->client, &options, &machine->lock, err);
}

static void machine_stop(struct machine *machine)
{
    hl_lock_free(machine->lock);
    hl_client_close(machine->client);
}

/* The machine holds the lock, has read the row, and is about to write: then it stands still. A
 * process that is stopped does not notice; this one waits. */
static int stand_still(struct machine *machine, PGconn *db, uint64_t *ret_token, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = 5000;
    options.lease_ms = 200;
    int rc = hl_lock_acquire_with(machine->lock, &options, err);
    if (rc == 0) {
        *ret_token = hl_lock_token(machine->lock, NULL);
        printf("slow: reads %" PRId64 ", and stands still\n", account_read(db));
        nanosleep(&(struct timespec){0, 300000000}, NULL);
    }
    return rc;
}

static int withdraw(struct machine *machine, PGconn *db, int64_t amount, hl_error *err)
{
    int rc = hl_lock_acquire_for(machine->lock, 5000, err);

    if (rc < 0)
        return rc;
    int64_t left = account_read(db) - amount;
    enum verdict verdict = account_write(db, left, hl_lock_token(machine->lock, NULL));
    printf("fast: withdraws %" PRId64 ": %s\n", amount, verdict_text(db, verdict));
    return hl_lock_release(machine->lock, err);
}

static int run(const char *url, PGconn *db, hl_error *err)
{
    struct machine slow = {NULL, NULL}, fast = {NULL, NULL};
    uint64_t token = 0;
    int rc = machine_start(&slow, url, err);

    if (rc == 0)
        rc = machine_start(&fast, url, err);
    if (rc == 0)
        rc = stand_still(&slow, db, &token, err);
    if (rc == 0)
        rc = withdraw(&fast, db, 30, err);
    if (rc == 0) {
        enum verdict verdict = account_write(db, 100 - 50, token); /* it read 100 */
        printf("slow: goes on, withdraws 50: %s\n", verdict_text(db, verdict));
        printf("slow: its release says %s\n", hl_err_name(hl_lock_release(slow.lock, NULL)));
        printf("%s: %" PRId64 " are left\n",
               verdict == REFUSED ? "the late write was refused" : "the late write was not refused",
               account_read(db));
    }
    machine_stop(&fast);
    machine_stop(&slow);
    return rc;
}

static const char does[] = "A write that comes too late, and the row of PostgreSQL that refuses "
                           "it.\nBehind the URL: the connection string of a PostgreSQL database.";

/* The account is there. */
static bool account_make(PGconn *db)
{
    if (PQstatus(db) != CONNECTION_OK) /* else its reason would be lost with the first command */
        return false;
    PGresult *made = PQexec(db, account);
    bool is_made = PQresultStatus(made) == PGRES_COMMAND_OK;
    PQclear(made);
    return is_made;
}

int main(int argc, char **argv)
{
    const char *url = example_url(argc, argv, does);
    hl_error err = HL_ERROR_INIT;
    PGconn *db = PQconnectdb(argc > 2 ? argv[2] : "");
    int rc = -1;

    if (!account_make(db))
        fprintf(stderr, "fenced_postgres: %s", PQerrorMessage(db));
    else if ((rc = run(url, db, &err)) < 0)
        fprintf(stderr, "fenced_postgres: %s\n", err.text);
    PQfinish(db);
    return rc < 0;
}
