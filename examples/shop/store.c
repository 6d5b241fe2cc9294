/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The statements. What makes the shop safe is in three of them: store_find(), store_read() and
 * store_write(). */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* There is no CHECK (stock >= 0): the shop without a lock has to be able to fail. */
static const char store_tables[] =
    "BEGIN;"
    "SELECT pg_advisory_xact_lock(7237128);" /* two processes may begin at once */
    "CREATE TABLE IF NOT EXISTS article ("
    "  name text PRIMARY KEY,"
    "  initial bigint NOT NULL CHECK (initial >= 0),"
    "  stock bigint NOT NULL,"
    "  token bigint NOT NULL DEFAULT 0);" /* the largest that has read or written */
    "CREATE TABLE IF NOT EXISTS orders ("
    "  id text PRIMARY KEY," /* chosen by the buyer: the same order cannot come in twice */
    "  article text NOT NULL REFERENCES article,"
    "  quantity bigint NOT NULL CHECK (quantity > 0),"
    "  answer text NOT NULL CHECK (answer IN ('sold', 'sold out')),"
    "  seller text NOT NULL,"
    "  made timestamptz NOT NULL DEFAULT now());"
    "CREATE TABLE IF NOT EXISTS seller ("
    "  id text PRIMARY KEY,"
    "  pid int NOT NULL,"
    "  address text NOT NULL,"
    "  entered timestamptz NOT NULL DEFAULT now(),"
    "  has_left boolean NOT NULL DEFAULT false,"
    "  sold bigint NOT NULL DEFAULT 0,"
    "  sold_out bigint NOT NULL DEFAULT 0,"
    "  tried_again bigint NOT NULL DEFAULT 0,"
    "  fenced bigint NOT NULL DEFAULT 0,"
    "  lost bigint NOT NULL DEFAULT 0,"
    "  waits bigint NOT NULL DEFAULT 0,"
    "  wait_p50_us bigint NOT NULL DEFAULT 0,"
    "  wait_p99_us bigint NOT NULL DEFAULT 0,"
    "  wait_max_us bigint NOT NULL DEFAULT 0);"
    "COMMIT";

static bool store_do(struct database *database, const char *sql, int count,
                     const char *const *values)
{
    PGresult *result = database_run(database, sql, count, values);

    PQclear(result);
    return result != NULL;
}

bool store_prepare(struct database *database, const struct config *config)
{
    bool is_done = store_do(database, store_tables, 0, NULL);

    for (int i = 0; is_done && i < config->article_count; i++) {
        char stock[24];
        const char *const values[] = {config->articles[i].name, stock};

        snprintf(stock, sizeof(stock), "%lld", config->articles[i].stock);
        is_done = store_do(database,
                           "INSERT INTO article (name, initial, stock) VALUES ($1, $2, $2)"
                           " ON CONFLICT DO NOTHING",
                           2, values);
    }
    return is_done;
}

bool store_leave(struct database *database, const char *id)
{
    const char *const values[] = {id};

    return store_do(database, "UPDATE seller SET has_left = true WHERE id = $1", 1, values);
}

/* The answer that this order has had, if it has come in before. */
enum store_verdict store_find(struct database *database, const struct config *config,
                              const struct order *order, enum answer *ret_answer)
{
    const char *const values[] = {order->id};
    PGresult *result = database_run(
        database, "SELECT answer, article, quantity FROM orders WHERE id = $1", 1, values);

    if (!result)
        return STORE_FAILED;
    bool is_there = PQntuples(result) == 1;
    if (is_there) {
        bool is_same =
            strcmp(PQgetvalue(result, 0, 1), config->articles[order->article].name) == 0 &&
            strtoll(PQgetvalue(result, 0, 2), NULL, 10) == order->quantity;
        bool is_sold = strcmp(PQgetvalue(result, 0, 0), answer_text(ANSWER_SOLD)) == 0;
        *ret_answer = !is_same ? ANSWER_OTHER_ORDER : is_sold ? ANSWER_SOLD : ANSWER_SOLD_OUT;
    }
    PQclear(result);
    return is_there ? STORE_DONE : STORE_ABSENT;
}

/*
 * Reads the stock and leaves the token in the row, in one step. From here on the row refuses each
 * earlier hold: were the token written only with the new stock, a late write could fall between
 * this read and our write, and be lost.
 */
enum store_verdict store_read(struct database *database, struct reading *reading)
{
    char token[24];
    const char *const values[] = {reading->article, token};

    snprintf(token, sizeof(token), "%" PRIu64, reading->token);
    PGresult *result = database_run(database,
                                    "UPDATE article SET token = $2"
                                    " WHERE name = $1 AND token <= $2 RETURNING stock",
                                    2, values);
    if (!result)
        return STORE_FAILED;
    bool is_read = PQntuples(result) == 1;
    if (is_read)
        reading->stock = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return is_read ? STORE_DONE : STORE_REFUSED;
}

/* Of two copies of an order that are under way at once, the second one fails at the primary key. */
static const char store_sqlstate_twice[] = "23505";

/* The new stock and the order, both or none: one statement is one transaction. No row is changed
 * when a later hold has read since. */
enum store_verdict store_write(struct database *database, const struct reading *reading,
                               const struct order *order, enum answer answer, const char *seller)
{
    char token[24], stock[24], quantity[24];
    const char *const values[] = {reading->article,    token, stock, order->id, quantity,
                                  answer_text(answer), seller};

    snprintf(token, sizeof(token), "%" PRIu64, reading->token);
    snprintf(stock, sizeof(stock), "%lld",
             answer == ANSWER_SOLD ? reading->stock - order->quantity : reading->stock);
    snprintf(quantity, sizeof(quantity), "%lld", order->quantity);
    PGresult *result = database_run(
        database,
        "WITH written AS (UPDATE article SET stock = $3 WHERE name = $1 AND token = $2 RETURNING 1)"
        "INSERT INTO orders (id, article, quantity, answer, seller)"
        " SELECT $4::text, $1, $5::bigint, $6::text, $7::text FROM written",
        7, values);
    if (!result)
        return strcmp(database->state, store_sqlstate_twice) == 0 ? STORE_TWICE : STORE_FAILED;
    bool is_written = strcmp(PQcmdTuples(result), "1") == 0;
    PQclear(result);
    return is_written ? STORE_DONE : STORE_REFUSED;
}

enum store_verdict store_token(struct database *database, const char *article, uint64_t *ret_token)
{
    const char *const values[] = {article};
    PGresult *result =
        database_run(database, "SELECT token FROM article WHERE name = $1", 1, values);

    if (!result)
        return STORE_FAILED;
    bool is_there = PQntuples(result) == 1;
    if (is_there)
        *ret_token = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return is_there ? STORE_DONE : STORE_ABSENT;
}

/* Also the first time, and when the row or the answer of the first time was lost. */
static const char store_note_sql[] =
    "INSERT INTO seller (id, address, pid, sold, sold_out, tried_again, fenced, lost,"
    "   waits, wait_p50_us, wait_p99_us, wait_max_us)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
    " ON CONFLICT (id) DO UPDATE SET address = excluded.address, has_left = false,"
    "   sold = excluded.sold, sold_out = excluded.sold_out, tried_again = excluded.tried_again,"
    "   fenced = excluded.fenced, lost = excluded.lost, waits = excluded.waits,"
    "   wait_p50_us = excluded.wait_p50_us, wait_p99_us = excluded.wait_p99_us,"
    "   wait_max_us = excluded.wait_max_us";

bool store_note(struct database *database, const char *id, const char *address,
                const struct figures *figures)
{
    const unsigned long long numbers[] = {(unsigned long long)getpid(),
                                          figures->sold,
                                          figures->sold_out,
                                          figures->tried_again,
                                          figures->fenced,
                                          figures->lost,
                                          figures->waits,
                                          figures->wait_p50_us,
                                          figures->wait_p99_us,
                                          figures->wait_max_us};
    enum { COUNT = sizeof(numbers) / sizeof(*numbers) };
    char texts[COUNT][24];
    const char *values[COUNT + 2] = {id, address};

    for (int i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%llu", numbers[i]);
        values[i + 2] = texts[i];
    }
    return store_do(database, store_note_sql, COUNT + 2, values);
}

/* Of all orders, so it takes the longer the more there are. */
static const char store_sales_sql[] =
    "WITH sale AS ("
    "  SELECT a.name, a.initial, a.stock, coalesce(o.sold, 0)::bigint AS sold,"
    "    coalesce(o.orders, 0) AS orders, coalesce(o.refused, 0) AS refused"
    "  FROM article a LEFT JOIN ("
    "    SELECT article, sum(quantity) FILTER (WHERE answer = 'sold') AS sold,"
    "      count(*) FILTER (WHERE answer = 'sold') AS orders,"
    "      count(*) FILTER (WHERE answer = 'sold out') AS refused"
    "    FROM orders GROUP BY article) o ON o.article = a.name)"
    "SELECT json_build_object("
    "  'articles', (SELECT coalesce(json_agg(json_build_object('name', name, 'initial', initial,"
    "     'stock', stock, 'sold', sold, 'orders', orders, 'refused', refused,"
    "     'oversold', greatest(sold - initial, 0)) ORDER BY name), '[]') FROM sale),"
    "  'sum', (SELECT json_build_object('initial', sum(initial), 'stock', sum(stock),"
    "     'sold', sum(sold), 'orders', sum(orders), 'refused', sum(refused),"
    "     'oversold', sum(greatest(sold - initial, 0)),"
    "     'astray', sum(abs(initial - stock - sold))) FROM sale))";

PGresult *store_sales(struct database *database)
{
    return database_run(database, store_sales_sql, 0, NULL);
}

/*
 * Whether a process is alive, PostgreSQL knows best: its sessions, which have its id as their name,
 * end with it. No heartbeat, so no time after which a slow process would look dead.
 */
static const char store_processes_sql[] =
    "SELECT json_build_object("
    "  'processes', (SELECT coalesce(json_agg(json_build_object('id', s.id, 'pid', s.pid,"
    "     'address', s.address, 'state', CASE WHEN s.has_left THEN 'left'"
    "        WHEN EXISTS (SELECT FROM pg_stat_activity p WHERE p.application_name = 'shop ' || s.id"
    "           AND p.datname = current_database()) THEN 'open' ELSE 'gone' END,"
    "     'sold', s.sold, 'sold_out', s.sold_out, 'tried_again', s.tried_again,"
    "     'fenced', s.fenced, 'lost', s.lost, 'waits', s.waits, 'p50_us', s.wait_p50_us,"
    "     'p99_us', s.wait_p99_us, 'max_us', s.wait_max_us) ORDER BY s.entered, s.id), '[]')"
    "   FROM (SELECT * FROM seller ORDER BY entered DESC LIMIT 20) s))";

PGresult *store_processes(struct database *database)
{
    return database_run(database, store_processes_sql, 0, NULL);
}
