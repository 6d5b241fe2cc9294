/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What both sides think while masters of theirs are dead, stand still, or restart empty. */
#include "redlock_laws.h"

/* ---- A minority, and a majority ---- */

/* What was held stays so, and what is free is taken and shared as before. */
static void expect_neither_stopped(void (*strike)(struct redis_server *server))
{
    hl_client **clients = open_masters(NULL);
    hl_lock *ours = new_redlock(clients, "ours"), *theirs = new_redlock(clients, "theirs");
    int lease_ms = (int)slow_ms(20000); /* redsync waits for a twentieth of it */
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_lock_acquire(ours, ERR));
    expect_peer("a", "true", "acquire theirs %d 1", LEASE_MS);
    expect_masters_with("ours", 5);
    expect_masters_with("theirs", 5);
    strike(masters.server[0]);
    strike(masters.server[3]);

    expect_peer("a", "true", "extend theirs %d", LEASE_MS);
    expect_peer("a", "true", "holds theirs");
    check(hl_lock_is_held(ours, NULL));
    expect_outcome(hl_lock_try_acquire(theirs, &err), HL_EBUSY);
    check_has(err.text, "acquire 'theirs': 3 of 5 masters said no");
    expect_peer_says("b", library.busy, "acquire ours %d 1", lease_ms);
    peer_do("a", "release theirs");
    expect_ok(hl_lock_acquire_for(theirs, slow_ms(30000), ERR));
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("ours", 0);
    expect_peer("b", "true", "acquire ours %d 1", lease_ms);
    expect_outcome(hl_lock_try_acquire(ours, ERR), HL_EBUSY);
}

void law_minority_that_is_killed_stops_neither(void)
{
    expect_neither_stopped(redis_server_kill);
}

void law_minority_that_stands_still_stops_neither(void)
{
    expect_neither_stopped(redis_server_freeze);
    redis_server_thaw(masters.server[0]);
    redis_server_thaw(masters.server[3]);
}

void law_majority_that_is_killed_gives_it_to_neither(void)
{
    hl_client **clients = open_masters(NULL);
    hl_lock *ours = new_redlock(clients, "stock");
    hl_error err = HL_ERROR_INIT;
    expect_shared(ours, "stock");
    for (int i = 2; i < 5; i++)
        redis_server_kill(masters.server[i]);
    for (int i = 2; i < 5; i++)
        expect_cut_off(clients[i]);
    expect_outcome(hl_lock_try_acquire(ours, &err), HL_ECONN);
    check_has(err.text, "acquire 'stock': only 2 of 5 masters voted (connect 127.0.0.1:");
    const char *said = peer_do("a", "acquire stock %d 1", LEASE_MS);
    check(strcmp(said, "true") != 0);
    tell_figure("with 3 of 5 masters dead, ours: %s", err.text);
    tell_figure("with 3 of 5 masters dead, %s: %s", library.word, said);
    expect_masters_with("stock", 0); /* the living have it back */
    for (int i = 2; i < 5; i++)
        redis_server_restart(masters.server[i]);
    expect_ok(hl_lock_acquire_for(ours, slow_ms(60000), ERR));
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("stock", 0);
}

/* ---- A master that restarts empty (stories, "crash recovery") ---- */

static void restart_third_empty(void)
{
    redis_server_kill(masters.server[2]);
    redis_server_wipe(masters.server[2]);
    redis_server_restart(masters.server[2]);
}

struct wish {
    const char *who;
    int64_t lease_ms;
};

static bool is_got(void *arg)
{
    const struct wish *wish = arg;
    return strcmp(peer_do(wish->who, "acquire stock %d 1", (int)wish->lease_ms), "true") == 0;
}

/* It asks once, and again; it may still have to find out that a master is there again, or be hasty
 * with a brief lease. */
static void expect_got_soon(const char *who, int64_t lease_ms)
{
    check(wait_until(is_got, &(struct wish){who, lease_ms}, 20000));
}

void law_master_that_restarts_empty_votes_twice_for_them(void)
{
    peer_open_reaching("in_part", 3);
    expect_got_soon("in_part", LEASE_MS);
    restart_third_empty();
    expect_got_soon("b", LEASE_MS);
    expect_peer("in_part", "true", "holds stock");
    expect_peer("b", "true", "holds stock");
    tell_figure("%s: A and B both hold 'stock', each by three votes of five", library.word);
}

/* The delay of this library keeps its own programs away, and no others. */
void law_master_that_restarts_empty_votes_for_them_while_we_hold(void)
{
    masters_use_proxies();
    hl_client **clients = open_masters(CLIENT(.watchdog_timeout_ms = LEASE_MS));
    for (int i = 3; i < 5; i++) {
        proxy_refuse(masters.proxy[i], true);
        proxy_kill_all(masters.proxy[i]);
    }
    hl_lock *ours = new_redlock(clients, "stock");
    expect_ok(hl_lock_acquire(ours, ERR));
    check_int(masters_with("stock"), 3);
    proxy_refuse(masters.proxy[2], true); /* it could ask the restarted master first */
    proxy_kill_all(masters.proxy[2]);
    restart_third_empty();
    expect_got_soon("b", LEASE_MS);
    check(hl_lock_is_held(ours, NULL));
    tell_figure("%s has 'stock' by the vote of a restarted master, and ours believes still",
                library.word);
}

void law_master_that_restarts_empty_has_no_vote_for_us(void)
{
    int64_t lease_ms = slow_ms(2500);
    hl_lock *ours =
        new_redlock_of(open_masters(CLIENT(.watchdog_timeout_ms = lease_ms)), 5, "stock",
                       REDLOCK(.vote_timeout_ms = slow_ms(2000))); /* max_lease_ms is lease_ms */
    hl_error err = HL_ERROR_INIT;
    char refused[256] = "";
    int code;
    expect_ok(hl_lock_acquire_for(ours, slow_ms(60000), ERR)); /* all have been up for so long */
    expect_ok(hl_lock_release(ours, ERR));
    expect_masters_with("stock", 0);
    peer_open_reaching("in_part", 3);
    expect_got_soon("in_part", lease_ms);
    restart_third_empty();
    do {
        code = hl_lock_try_acquire(ours, &err);
        check(code < 0 || strcmp(peer_do("in_part", "holds stock"), "false") == 0);
        if (code < 0)
            snprintf(refused, sizeof refused, "%s", err.text);
    } while (code < 0);
    tell_figure("ours has 'stock' when the lease of %s is over, and not before: %s", library.word,
                refused);
    expect_ok(hl_lock_release(ours, ERR));
}
