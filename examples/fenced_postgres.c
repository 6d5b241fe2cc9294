/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A write that comes too late, and the database that refuses it. Two machines work on an account,
 * one at a time by a lock in Redis; the account itself is a row in PostgreSQL. One of the machines
 * stands still for longer than its lease, and goes on while the other is inside.
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
static const char account[] = "CREATE TEMPORARY TABLE account ("
                              "  id int PRIMARY KEY,"
                              "  balance bigint NOT NULL,"
                              "  token bigint NOT NULL DEFAULT 0);" /* the largest that was here */
                              "INSERT INTO account VALUES (7, 100)";

enum verdict { DONE, REFUSED, FAILED };

static PGresult *account_run(PGconn *db, const char *statement, uint64_t token, int64_t balance)
{
    char numbers[2][24];
    const char *values[] = {numbers[0], numbers[1]};

    snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, token);
    snprintf(numbers[1], sizeof(numbers[1]), "%" PRId64, balance);
    return PQexecParams(db, statement, strstr(statement, "$2") ? 2 : 1, NULL, values, NULL, NULL,
                        0);
}

/* Reads, and leaves the token in the row: from here on the row refuses each earlier hold. */
static enum verdict account_read(PGconn *db, uint64_t token, int64_t *ret_balance)
{
    PGresult *result = account_run(db,
                                   "UPDATE account SET token = $1"
                                   " WHERE id = 7 AND token <= $1 RETURNING balance",
                                   token, 0);
    bool is_done = PQresultStatus(result) == PGRES_TUPLES_OK;
    bool is_read = is_done && PQntuples(result) == 1;
    if (is_read)
        *ret_balance = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return !is_done ? FAILED : is_read ? DONE : REFUSED;
}

/* Writes, unless a later hold has read since. */
static enum verdict account_write(PGconn *db, uint64_t token, int64_t balance)
{
    PGresult *result = account_run(
        db, "UPDATE account SET balance = $2 WHERE id = 7 AND token = $1", token, balance);
    bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
    bool is_written = strcmp(PQcmdTuples(result), "1") == 0; /* rows that were changed */
    PQclear(result);
    return !is_done ? FAILED : is_written ? DONE : REFUSED;
}

static const char *verdict_text(PGconn *db, enum verdict verdict)
{
    return verdict == DONE ? "done" : verdict == REFUSED ? "refused" : PQerrorMessage(db);
}

/* A machine has a client of its own, and here a share in one connection to the database. */
struct machine {
    const char *called;
    hl_client *client;
    hl_lock *lock;
    PGconn *db;
    int64_t balance; /* as it has read it */
    uint64_t token;
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

/* lease_ms 0: until the release. */
static int machine_read(struct machine *machine, int64_t lease_ms, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = 5000;
    options.lease_ms = lease_ms;
    int rc = hl_lock_acquire_with(machine->lock, &options, err);
    if (rc < 0)
        return rc;
    machine->token = hl_lock_token(machine->lock, NULL);
    enum verdict verdict = account_read(machine->db, machine->token, &machine->balance);
    printf("%s: reads %" PRId64 ": %s\n", machine->called, machine->balance,
           verdict_text(machine->db, verdict));
    return 0;
}

static enum verdict machine_withdraw(const struct machine *machine, int64_t amount)
{
    enum verdict verdict = account_write(machine->db, machine->token, machine->balance - amount);

    printf("%s: withdraws %" PRId64 ": %s\n", machine->called, amount,
           verdict_text(machine->db, verdict));
    return verdict;
}

/* A process that is stopped does not notice that it stands still; this one waits. */
static int run(const char *url, PGconn *db, hl_error *err)
{
    struct machine slow = {.called = "slow", .db = db}, fast = {.called = "fast", .db = db};
    int rc = machine_start(&slow, url, err);

    if (rc == 0)
        rc = machine_start(&fast, url, err);
    if (rc == 0)
        rc = machine_read(&slow, 200, err);
    if (rc == 0) {
        puts("slow: stands still, and its lease ends");
        nanosleep(&(struct timespec){0, 300000000}, NULL);
        rc = machine_read(&fast, 0, err);
    }
    if (rc == 0) {
        bool is_refused = machine_withdraw(&slow, 50) == REFUSED;
        machine_withdraw(&fast, 30);
        printf("slow: its release says %s\n", hl_err_name(hl_lock_release(slow.lock, NULL)));
        account_read(db, fast.token, &fast.balance);
        printf("%s: %" PRId64 " are left\n",
               is_refused ? "the late write was refused" : "the late write was not refused",
               fast.balance);
        rc = hl_lock_release(fast.lock, err);
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
