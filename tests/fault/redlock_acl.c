/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The rights that docs/redlock.md lists for a Redlock: they are enough, each of them is used, and
 * what is missed without those by which a restarted master is known. */

#include "acl_kit.h"
#include "acl_pages.h"

#include "support/masters.h"

/* Beside redlock_rights. */
static const char *const redlock_server_rights[] = {
    "+evalsha", "+script|load", "+publish", "+subscribe", "+unsubscribe", "+info", NULL};
static const char *const keeps_rights[] = {"+config|get", NULL};
/* What any client may be denied; the channel is that of the grants, which a Redlock has not. */
static const char *const better_rights[] = {
    "+ping", "+role", "+client|setname", "+client|id", "+client|kill", "&hirelock:*", NULL};

enum { MASTERS = 3, LONG_MS = 600000 };

/* They have just been started, and keep all that they write: so each has a vote if it may say so.
 */
static void up(void)
{
    masters_up_with(MASTERS, &(struct redis_options){
                                 .config = "appendonly yes\nappendfsync always\nuser locker"});
}

#define AclLaw(name) Test(redlock_acl, name, .init = up, .fini = server_down)

static void give_rights(const char *const *better, const char *but)
{
    const char *const *const lists[] = {redlock_rights, redlock_server_rights, keeps_rights, better,
                                        NULL};

    for (int i = 0; i < MASTERS; i++) {
        acl_give(masters.server[i], lists, false, but);
        redis_do(masters.server[i], "FLUSHALL");
        redis_do(masters.server[i], "SET hirelock_data 0"); /* so it has never been one */
    }
}

static const char *denied(void)
{
    const char *object = NULL;

    for (int i = 0; i < MASTERS && !object; i++)
        object = acl_denied_at(masters.server[i], NULL);
    return object;
}

static bool is_denied(void *arg)
{
    (void)arg;
    return denied() != NULL;
}

struct side {
    hl_client **clients;
    hl_lock *lock;
};

static hl_lock *new_lock_of(hl_client *const *clients, size_t count, unsigned flags,
                            int64_t max_lease_ms)
{
    return new_redlock_of(clients, count, "lock:stock",
                          REDLOCK(.flags = flags, .vote_timeout_ms = slow_ms(2000),
                                  .retry_min_ms = 60000, .max_lease_ms = max_lease_ms));
}

/* Its waiters are woken by messages, or never. */
static struct side new_side(int64_t max_lease_ms)
{
    struct side side;

    side.clients = open_masters(CLIENT(.username = "locker", .password = "password",
                                       .watchdog_timeout_ms = SHORT_MS, .poll_ms = 60000));
    side.lock = new_lock_of(side.clients, MASTERS, HL_REDLOCK_NESTS, max_lease_ms);
    return side;
}

static void close_side(const struct side *side)
{
    free_lock(side->lock);
    for (int i = 0; i < MASTERS; i++)
        close_client(side->clients[i]);
}

static bool nobody_listens_or_is_denied(void *arg)
{
    for (int i = 0; i < MASTERS; i++)
        if (redis_subscribers(masters.server[i], "hirelock_redlock:{lock:stock}") > 0)
            return is_denied(arg);
    return true;
}

/* Takes, renews, waits, is woken, releases, looks, and releases by force. */
static void use(int64_t max_lease_ms)
{
    struct side a = new_side(max_lease_ms), b = new_side(max_lease_ms);
    hl_lock_info info = HL_LOCK_INFO_INIT;

    expect_ok(hl_lock_acquire_for(a.lock, slow_ms(60000), ERR));
    expect_outcome(hl_lock_try_acquire(b.lock, ERR), HL_EBUSY);
    struct actor *waiter = actor_start_acquire(b.lock, ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    for (int i = 0; i < MASTERS; i++)
        check(redis_wait_subscribers(masters.server[i], "hirelock_redlock:{lock:stock}", 1, 10000));
    for (int i = 0; i < MASTERS; i++)
        wait_stat(a.clients[i], renewals, 1);
    expect_ok(hl_lock_release(a.lock, ERR));
    expect_ok(actor_end(waiter));
    expect_ok(hl_lock_inspect(a.lock, &info, ERR));
    check(info.locked && !info.mine);
    expect_ok(hl_lock_force_release(a.lock, ERR));
    expect_masters_with("lock:stock", 0);
    check(wait_until(nobody_listens_or_is_denied, NULL, 30000));
    close_side(&a);
    close_side(&b);
}

AclLaw(the_least_that_is_needed_is_enough)
{
    give_rights(no_rights, NULL);
    use(LONG_MS);
    for (int i = 0; i < MASTERS; i++) {
        server = masters.server[i];
        acl_check_log("hirelock:");
    }
    server = masters.server[0];
}

static void expect_used(const char *right)
{
    give_rights(better_rights, right);
    struct side a = new_side(LONG_MS), b = new_side(LONG_MS);
    struct scene scene = {.client = a.clients[0], .other = b.clients[0], .is_over = is_denied};

    if (!is_denied(NULL))
        use_two(&scene, a.lock, b.lock);
    check(wait_until(nobody_listens_or_is_denied, NULL, 30000));
    close_side(&a);
    close_side(&b);
    check_msg(is_denied(NULL), "nothing is denied without %s", right);
}

static void expect_each_used(const char *const *rights)
{
    for (; *rights; rights++)
        expect_used(*rights);
}

AclLaw(has_nothing_that_is_not_used)
{
    give_rights(better_rights, NULL);
    use(LONG_MS);
    check_msg(!is_denied(NULL), "%s is denied", denied());
    expect_each_used(redlock_rights);
    expect_each_used(redlock_server_rights);
    expect_each_used(keeps_rights);
}

AclLaw(without_config_get_lets_a_master_that_keeps_all_wait_as_the_others_do)
{
    hl_error err = HL_ERROR_INIT;

    give_rights(no_rights, "+config|get");
    struct side young = new_side(LONG_MS);
    expect_outcome(hl_lock_try_acquire(young.lock, &err), HL_ESERVER);
    check_has(err.text,
              " restarted or lost its data, and may have forgotten a holder: it is asked in ");
    check_int(masters_with("lock:stock"), 0);
    use(SHORT_MS); /* it misses nothing else */
}

/* No wait would help, so that no call waits. */
static void expect_denied_without_info(hl_client *const *clients, size_t count)
{
    hl_lock *lock = new_lock_of(clients, count, 0, LONG_MS);
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_lock_try_acquire(lock, &err), HL_EDENIED);
    check_has(err.text, " does not tell since when it runs, and may have forgotten a holder");
    check_has(err.text, ": its user needs +info");
    expect_outcome(hl_lock_acquire_for(lock, HL_WAIT_FOREVER, &err), HL_EDENIED);
    check_int(masters_with("lock:stock"), 0);
    free_lock(lock);
}

static void expect_pair(hl_lock *lock)
{
    expect_ok(hl_lock_acquire_for(lock, slow_ms(60000), ERR));
    expect_ok(hl_lock_release(lock, ERR));
}

AclLaw(without_info_is_denied_unless_a_restart_does_not_matter)
{
    give_rights(no_rights, "+info");
    struct side side = new_side(LONG_MS);
    expect_pair(side.lock); /* the masters say that they keep all */
    close_side(&side);
    for (int i = 0; i < MASTERS; i++)
        redis_do(masters.server[i], "CONFIG SET appendfsync everysec");
    side = new_side(LONG_MS);
    free_lock(side.lock);
    expect_denied_without_info(side.clients, 1);
    expect_denied_without_info(side.clients, MASTERS);
    expect_pair(new_lock_of(side.clients, MASTERS, HL_REDLOCK_NO_RESTART_DELAY, LONG_MS));
}
