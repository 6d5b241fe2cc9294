/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Owners in line. */

#include "passing_line.h"

#include "redis/script.h"

hl_client *client;
hl_lock *stock;
hl_owner *holding, *line[LINE];
atomic_int told[LINE];

static void count_turn(int code, const hl_error *err, void *arg)
{
    (void)err;
    if (code == HL_OK) /* and not a wait that the end of the test ends */
        atomic_fetch_add((atomic_int *)arg, 1);
}

void begin_at(const char *url, const hl_client_options *options)
{
    client = open_client_at(url, options);
    stock = new_lock(client, "stock");
    holding = new_owner(client);
    for (int i = 0; i < LINE; i++)
        line[i] = new_owner(client);
    const struct hli_script *keep = hli_script_get(HLI_SCRIPT_LOCK_KEEP);
    redis_do(server, "SCRIPT LOAD %b", keep->text, keep->length);
    expect_ok(hl_lock_acquire(stock, NULL)); /* from now on the server knows the others, too */
    expect_ok(hl_lock_release(stock, NULL));
}

void begin(const hl_client_options *options)
{
    begin_at(redis_server_url(server), options);
}

void take(hl_owner *owner_, const hl_acquire_options *options)
{
    hl_acquire_options asked = *options;
    asked.owner = owner_;
    asked.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_lock_acquire_with(stock, &asked, NULL));
}

void line_up(int i, const hl_acquire_options *options)
{
    hl_acquire_options asked = *options;
    asked.owner = line[i];
    asked.wait_ms = HL_WAIT_FOREVER;
    expect_ok(hl_lock_acquire_async(stock, &asked, count_turn, &told[i]));
}

void give(hl_owner *owner_)
{
    expect_ok(hl_lock_release_as(stock, owner_, NULL));
}

bool has_come(void *arg)
{
    const struct line_turn *turn = arg;
    return atomic_load(&told[turn->i]) >= turn->n;
}

void expect_turn(int i, int n)
{
    check(wait_until(has_come, &(struct line_turn){i, n}, 10000));
}

uint64_t passes(void)
{
    return stats_of(client).passes;
}

bool gives_by_pass(const hl_acquire_options *options, const hl_acquire_options *next_options)
{
    static int turns;
    uint64_t before = passes();
    take(holding, options);
    line_up(0, next_options);
    give(holding);
    expect_turn(0, ++turns);
    return passes() == before + 1;
}

const hl_acquire_options plain = {.size = sizeof plain};

void begin_passed(const hl_acquire_options *options)
{
    struct deadline deadline = deadline_in(20000);
    while (!gives_by_pass(&plain, options)) {
        check(!deadline_is_over(deadline));
        give(line[0]);
    }
}

struct hli_tenure *current(void)
{
    return stock->handle.name->current;
}
