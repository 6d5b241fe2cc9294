/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A holder that is stopped for longer than its lease, just before it writes to a PostgreSQL
 * database, and goes on when another has held the lock and has written: each statement of
 * docs/fencing.md refuses it. And without the token it is let in, which is what all this is about.
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

/* A way to write. True if the database took it. */
typedef bool writing(struct postgres_link *link, int64_t balance, uint64_t token);

static bool write_blindly(struct postgres_link *link, int64_t balance, uint64_t token)
{
    (void)token;
    return postgres_do(link, "UPDATE account SET balance = %lld WHERE id = 7",
                       (long long)balance) == 1;
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

static int64_t balance_of(struct postgres_link *link)
{
    return strtoll(postgres_str(link, "SELECT balance FROM account WHERE id = 7"), NULL, 10);
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
    writing *write = *(writing **)arg;
    struct late_writer *late = process_shared(self);
    check(process_await(self, GO, 1, 60000));
    hl_client_options options = kit_options(slow_ms(450) + 2550, NULL);
    hl_client *client = open_client_at(late->redis, &options);
    hl_lock *lock = fenced(client);
    struct postgres_link *link = postgres_open(late->database);
    expect_ok(hl_lock_acquire(lock, ERR));
    int64_t balance = balance_of(link);
    late->token = hl_lock_token(lock, NULL);
    check(late->token > 0 && hl_lock_is_held(lock, NULL)); /* it looks, all is well, and then: */
    process_tell(self, READY);
    check(process_await(self, GO_ON, 1, 60000));
    late->was_taken = write(link, balance - 50, late->token);
    process_tell(self, DONE);
    expect_outcome(hl_lock_release(lock, ERR), HL_ELOST);
    postgres_close(link);
    free_lock(lock);
    close_client(client);
}

/* Returns whether the late write was taken. */
static bool write_late(struct process *holder, writing *write)
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
    check(hl_lock_token(lock, NULL) > late->token);
    check_int(balance_of(sql), 100);
    check(write(sql, 70, hl_lock_token(lock, NULL)));
    check(write(sql, 69, hl_lock_token(lock, NULL))); /* a holder may write more than once */
    expect_ok(hl_lock_release(lock, ERR));

    process_tell(holder, GO_ON);
    process_continue(holder);
    check(process_await(holder, DONE, 1, 60000));
    bool was_taken = late->was_taken;
    check_int(process_finish(holder, 10000), 0);
    free_lock(lock);
    close_client(client);
    return was_taken;
}

/* The child is there before the servers' threads and links. */
static bool stage(writing *write)
{
    struct process *holder = process_start(hold_over_a_stop, &write);
    start();
    return write_late(holder, write);
}

Test(fence_postgres, a_late_write_without_a_token_is_taken_and_undoes_anothers, .fini = stop,
     .timeout = 200)
{
    check(stage(write_blindly));
    check_int(balance_of(sql), 50);
}

Test(fence_postgres, a_late_update_is_refused_by_its_token, .fini = stop, .timeout = 200)
{
    check(!stage(write_update));
    check_int(balance_of(sql), 69);
}

Test(fence_postgres, a_late_upsert_is_refused_by_its_token, .fini = stop, .timeout = 200)
{
    check(!stage(write_upsert));
    check_int(balance_of(sql), 69);
}

Test(fence_postgres, a_late_transaction_is_refused_by_the_row_of_its_lock, .fini = stop,
     .timeout = 200)
{
    check(!stage(write_transaction));
    check_int(balance_of(sql), 69);
}
