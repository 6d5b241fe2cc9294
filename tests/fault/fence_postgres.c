/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A holder that is stopped for longer than its lease, just before it writes to a PostgreSQL
 * database, and goes on when another has held the lock and has written, or has read and is about to
 * write: the statements of docs/fencing.md refuse it. And without the token it is let in, which is
 * what all this is about.
 */
#include "process_kit.h"

#include "support/kinds.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_probe.h"

enum { GO, READY, GO_ON, DONE };

static struct postgres_server *database;
static struct postgres_link *sql;

static void start(void)
{
    database = postgres_server_start(); /* or the test is skipped */
    server = redis_server_start(NULL);
    sql = postgres_open(postgres_server_dir(database));
    postgres_do(sql, "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL, "
                     "token bigint NOT NULL DEFAULT 0)");
    postgres_do(sql, "CREATE TABLE fence (name text PRIMARY KEY, token bigint NOT NULL)");
    postgres_do(sql, "INSERT INTO account VALUES (7, 100)");
    postgres_do(sql, "INSERT INTO fence VALUES ('account:7', 0)");
}

static void stop(void)
{
    if (sql)
        postgres_close(sql);
    redis_server_stop(server);
    postgres_server_stop(database);
}

/* A way to read and to write. False if the database refused it. */
struct way {
    bool (*read)(struct postgres_link *link, uint64_t token, int64_t *ret_balance);
    bool (*write)(struct postgres_link *link, int64_t balance, uint64_t token);
    bool is_between; /* the late write comes when the other holder has read, and has not written */
};

static int64_t balance_of(struct postgres_link *link)
{
    return strtoll(postgres_str(link, "SELECT balance FROM account WHERE id = 7"), NULL, 10);
}

static bool read_plainly(struct postgres_link *link, uint64_t token, int64_t *ret_balance)
{
    (void)token;
    *ret_balance = balance_of(link);
    return true;
}

static bool read_with_token(struct postgres_link *link, uint64_t token, int64_t *ret_balance)
{
    const char *balance = postgres_str(link,
                                       "UPDATE account SET token = %llu "
                                       "WHERE id = 7 AND token <= %llu RETURNING balance",
                                       (unsigned long long)token, (unsigned long long)token);
    *ret_balance = strtoll(balance, NULL, 10);
    return balance[0] != '\0';
}

static bool write_blindly(struct postgres_link *link, int64_t balance, uint64_t token)
{
    (void)token;
    return postgres_do(link, "UPDATE account SET balance = %lld WHERE id = 7",
                       (long long)balance) == 1;
}

static bool write_what_was_read(struct postgres_link *link, int64_t balance, uint64_t token)
{
    return postgres_do(link, "UPDATE account SET balance = %lld WHERE id = 7 AND token = %llu",
                       (long long)balance, (unsigned long long)token) == 1;
}

static bool write_update(struct postgres_link *link, int64_t balance, uint64_t token)
{
    return postgres_do(link,
                       "UPDATE account SET balance = %lld, token = %llu "
                       "WHERE id = 7 AND token <= %llu",
                       (long long)balance, (unsigned long long)token,
                       (unsigned long long)token) == 1;
}

static bool write_upsert(struct postgres_link *link, int64_t balance, uint64_t token)
{
    return postgres_do(link,
                       "INSERT INTO account (id, balance, token) VALUES (7, %lld, %llu) "
                       "ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, "
                       "token = excluded.token WHERE account.token <= excluded.token",
                       (long long)balance, (unsigned long long)token) == 1;
}

static bool write_transaction(struct postgres_link *link, int64_t balance, uint64_t token)
{
    postgres_do(link, "BEGIN");
    bool passes = postgres_do(link,
                              "UPDATE fence SET token = %llu "
                              "WHERE name = 'account:7' AND token <= %llu",
                              (unsigned long long)token, (unsigned long long)token) == 1;
    if (passes)
        write_blindly(link, balance, token);
    postgres_do(link, passes ? "COMMIT" : "ROLLBACK");
    return passes;
}

struct late_writer { /* shared with the parent */
    char redis[96], database[64];
    bool was_taken;
    uint64_t token;
};

static hl_lock *fenced(hl_client *client)
{
    hl_lock *lock = NULL;
    expect_ok(fenced_lock_new(client, "account:7", NULL, &lock, ERR));
    return lock;
}

static void hold_over_a_stop(struct process *self, void *arg)
{
    const struct way *way = *(const struct way **)arg;
    struct late_writer *late = process_shared(self);
    check(process_await(self, GO, 1, 60000));
    hl_client_options options = kit_options(slow_ms(450) + 2550, NULL);
    hl_client *client = open_client_at(late->redis, &options);
    hl_lock *lock = fenced(client);
    struct postgres_link *link = postgres_open(late->database);
    expect_ok(hl_lock_acquire(lock, ERR));
    int64_t balance = -1;
    late->token = hl_lock_token(lock, NULL);
    check(way->read(link, late->token, &balance));
    check(late->token > 0 && hl_lock_is_held(lock, NULL)); /* it looks, all is well, and then: */
    process_tell(self, READY);
    check(process_await(self, GO_ON, 1, 60000));
    late->was_taken = way->write(link, balance - 50, late->token);
    process_tell(self, DONE);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    postgres_close(link);
    free_lock(lock);
    close_client(client);
}

/* Returns whether the late write was taken. */
static bool let_it_write(struct process *holder)
{
    const struct late_writer *late = process_shared(holder);
    process_tell(holder, GO_ON);
    process_continue(holder);
    check(process_await(holder, DONE, 1, 60000));
    return late->was_taken;
}

/* The same, in the story of the other holder. */
static bool write_late(struct process *holder, const struct way *way)
{
    struct late_writer *late = process_shared(holder);
    snprintf(late->redis, sizeof late->redis, "%s", redis_server_url(server));
    snprintf(late->database, sizeof late->database, "%s", postgres_server_dir(database));
    process_tell(holder, GO);
    check(process_await(holder, READY, 1, 60000));
    process_stop(holder);

    hl_client *client = open_client(NULL);
    hl_lock *lock = fenced(client);
    expect_ok(hl_lock_acquire_for(lock, slow_ms(20000), ERR));
    uint64_t token = hl_lock_token(lock, NULL);
    int64_t balance = -1;
    check(token > late->token);
    check(way->read(sql, token, &balance));
    check_int(balance, 100);
    bool was_taken = way->is_between && let_it_write(holder);
    check(way->write(sql, balance - 30, token));
    check(way->write(sql, balance - 31, token)); /* a holder may write more than once */
    expect_ok(hl_lock_release(lock, ERR));
    if (!way->is_between)
        was_taken = let_it_write(holder);
    check_int(process_finish(holder, 10000), 0);
    free_lock(lock);
    close_client(client);
    return was_taken;
}

/* The child is there before the servers' threads and links. */
static bool stage(const struct way *way)
{
    struct process *holder = process_start(hold_over_a_stop, &way);
    start();
    return write_late(holder, way);
}

#define PostgresLaw(suite, name) Test(suite, name, .fini = stop)

PostgresLaw(fence_postgres, a_late_write_without_a_token_is_taken_and_undoes_anothers)
{
    check(stage(&(struct way){read_plainly, write_blindly, false}));
    check_int(balance_of(sql), 50);
}

PostgresLaw(fence_postgres, a_late_write_of_what_was_read_is_refused_by_its_token)
{
    check(!stage(&(struct way){read_with_token, write_what_was_read, false}));
    check_int(balance_of(sql), 69);
}

PostgresLaw(fence_postgres, a_late_write_between_the_others_read_and_write_is_refused_too)
{
    check(!stage(&(struct way){read_with_token, write_what_was_read, true}));
    check_int(balance_of(sql), 69);
}

/* Which is why the read leaves the token: here a write that was taken is lost. */
PostgresLaw(fence_postgres, a_late_write_between_them_is_taken_and_lost_if_the_read_leaves_no_token)
{
    check(stage(&(struct way){read_plainly, write_update, true}));
    check_int(balance_of(sql), 69);
}

PostgresLaw(fence_postgres, a_late_update_is_refused_by_its_token)
{
    check(!stage(&(struct way){read_plainly, write_update, false}));
    check_int(balance_of(sql), 69);
}

PostgresLaw(fence_postgres, a_late_upsert_is_refused_by_its_token)
{
    check(!stage(&(struct way){read_plainly, write_upsert, false}));
    check_int(balance_of(sql), 69);
}

PostgresLaw(fence_postgres, a_late_transaction_is_refused_by_the_row_of_its_lock)
{
    check(!stage(&(struct way){read_plainly, write_transaction, false}));
    check_int(balance_of(sql), 69);
}
