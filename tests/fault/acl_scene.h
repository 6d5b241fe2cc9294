/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Each primitive at work, so that all of its page's rights are used: one client has to wait for
 * another. The calls may be denied something.
 */
#ifndef HL_TEST_ACL_SCENE_H
#define HL_TEST_ACL_SCENE_H

#include "support/actor.h"
#include "support/deadline.h"
#include "support/kinds.h"
#include "support/kit.h"

#include <stdio.h>
#include <string.h>

/* Clients at work with `name`, which `server` has. Not strict: something is denied to them, so
 * calls may fail, and nothing more is waited for when is_over() says so. */
struct scene {
    hl_client *client, *other, *third;
    const char *name;
    const char *url; /* for more clients */
    bool is_strict;
    bool (*is_over)(void *arg);
};

#define scene_expect(scene, call, code)                                                            \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if ((scene)->is_strict)                                                                    \
            expect_outcome(code_, code);                                                           \
    } while (0)
#define scene_ok(scene, call) scene_expect(scene, call, HL_OK)

/* A strict scene's waiters are woken by messages, or never. */
static inline hl_client *scene_open_with(const char *url, bool is_strict, unsigned flags)
{
    hl_client *client = NULL;
    const hl_client_options *options =
        CLIENT(.flags = flags, .poll_ms = is_strict ? slow_ms(60000) : 100,
               .watchdog_timeout_ms = is_strict ? SHORT_MS : slow_ms(600),
               .request_timeout_ms = slow_ms(2000));

    if (is_strict)
        return open_client_at(url, options);
    if (hl_client_open(url, options, &client, NULL) == HL_OK)
        return client;
    return NULL;
}

static inline hl_client *scene_open(const char *url, bool is_strict)
{
    return scene_open_with(url, is_strict, 0);
}

static inline void scene_close(struct scene *scene)
{
    hl_client *clients[] = {scene->client, scene->other, scene->third};

    for (int i = 0; i < 3; i++)
        if (clients[i] && scene->is_strict)
            close_client(clients[i]);
        else if (clients[i])
            hl_client_close(clients[i]);
}

static inline bool scene_is_over(const struct scene *scene)
{
    return !scene->is_strict && scene->is_over(NULL);
}

static inline int64_t scene_wait_ms(const struct scene *scene)
{
    return scene->is_strict ? slow_ms(30000) : slow_ms(500);
}

/* A wait of the other client, in a thread of its own. */
struct scene_wait {
    struct scene *scene;
    int (*take)(void *thing, int64_t wait_ms);
    void *thing;
    struct actor *actor;
};

static inline void scene_wait_run(void *arg)
{
    struct scene_wait *wait = arg;

    scene_ok(wait->scene, wait->take(wait->thing, scene_wait_ms(wait->scene)));
}

static inline bool scene_waits(void *arg)
{
    struct scene_wait *wait = arg;

    return stats_of(wait->scene->other).waiters_now > 0 || actor_is_done(wait->actor) ||
           scene_is_over(wait->scene);
}

static inline void scene_wait_begin(struct scene_wait *wait)
{
    wait->actor = actor_start();
    actor_begin(wait->actor, scene_wait_run, wait);
    check(wait_until(scene_waits, wait, 10000));
}

static inline void scene_wait_end(struct scene_wait *wait)
{
    actor_await(wait->actor);
}

struct scene_renewal {
    struct scene *scene;
    uint64_t before;
};

static inline bool scene_is_renewed(void *arg)
{
    const struct scene_renewal *renewal = arg;

    return stats_of(renewal->scene->client).renewals > renewal->before ||
           scene_is_over(renewal->scene);
}

static inline int take_lock(void *lock, int64_t wait_ms)
{
    return hl_lock_acquire_for(lock, wait_ms, ERR);
}

/* Levels, a renewal, a wait in vain and one that ends with a handover, a look, and force. */
static inline void use_two(struct scene *scene, hl_lock *lock, hl_lock *others)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    struct scene_wait wait = {scene, take_lock, others, NULL};
    struct scene_renewal renewal = {scene, stats_of(scene->client).renewals};

    scene_ok(scene, hl_lock_acquire_for(lock, scene_wait_ms(scene), ERR));
    scene_ok(scene, hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = HL_NO_WAIT), ERR));
    scene_expect(scene, hl_lock_acquire_for(others, 20, ERR), HL_ETIMEDOUT);
    scene_ok(scene, hl_lock_inspect(others, &info, ERR));
    check(wait_until(scene_is_renewed, &renewal, 10000));
    scene_ok(scene, hl_lock_release(lock, ERR));
    scene_wait_begin(&wait);
    scene_ok(scene, hl_lock_release(lock, ERR));
    scene_wait_end(&wait);
    (void)hl_lock_force_release(others, NULL);
    scene_ok(scene, hl_client_ping(scene->client, -1, ERR));
    actor_release(wait.actor, others, NULL);
    actor_stop(wait.actor);
}

static inline hl_lock *scene_lock(hl_client *client, hl_lock_kind kind, unsigned flags,
                                  const char *name)
{
    hl_lock_options options = LOCK_NAMED(kind, name);
    hl_lock *lock = NULL;

    options.size = sizeof options;
    options.flags = flags;
    expect_ok(hl_lock_new_with(client, &options, &lock, ERR));
    return lock;
}

/* Behind lost connections: a call with a short wait time may end with their failure. */
static inline void scene_await_links(const struct scene *scene)
{
    hl_client *clients[] = {scene->client, scene->other, scene->third};

    for (int i = 0; i < 3 && scene->is_strict; i++) {
        hl_lock *lock = scene_lock(clients[i], HL_LOCK_REENTRANT, 0, scene->name);
        expect_ok(hl_lock_acquire_for(lock, scene_wait_ms(scene), ERR));
        expect_ok(hl_lock_release(lock, ERR));
        hl_lock_free(lock);
    }
}

static inline bool scene_has_waiter_tag(void *scene)
{
    return scene_is_over(scene) ||
           redis_int(server, "EVAL %s 0", "return #redis.call('KEYS', 'hirelock_waiter:*')") > 0;
}

/* The holder's tag, which a busy answer reads, and that of a wait of more than a second. */
static inline void use_tags(struct scene *scene)
{
    struct scene told = *scene;

    told.client = scene_open_with(scene->url, scene->is_strict, HL_CLIENT_HOLDER_INFO);
    told.other = scene_open_with(scene->url, scene->is_strict, HL_CLIENT_HOLDER_INFO);
    told.third = NULL;
    if (told.client && told.other) {
        hl_lock *lock = scene_lock(told.client, HL_LOCK_REENTRANT, 0, scene->name);
        hl_lock *others = scene_lock(told.other, HL_LOCK_REENTRANT, 0, scene->name);
        hl_cancel *cancel = new_cancel();
        scene_ok(scene, hl_lock_acquire_for(lock, scene_wait_ms(scene), ERR));
        struct actor *waits =
            actor_start_acquire(others, ACQUIRE(.wait_ms = HL_WAIT_FOREVER, .cancel = cancel));
        check(wait_until(scene_has_waiter_tag, scene, 20000) || !scene->is_strict);
        hl_cancel_fire(cancel);
        scene_expect(scene, actor_end(waits), HL_ECANCELED);
        scene_ok(scene, hl_lock_release(lock, ERR));
        actor_stop(waits);
        hl_lock_free(lock);
        hl_lock_free(others);
    }
    scene_close(&told);
}

static inline void use_kinds(struct scene *scene, hl_lock_kind mine, hl_lock_kind others)
{
    hl_lock *first = scene_lock(scene->client, mine, 0, scene->name);
    hl_lock *second = scene_lock(scene->other, others,
                                 others == HL_LOCK_WRITE ? HL_LOCK_PREFER_WRITERS : 0, scene->name);

    use_two(scene, first, second);
    hl_lock_free(first);
    hl_lock_free(second);
}

static inline void use_lock(struct scene *scene)
{
    use_kinds(scene, HL_LOCK_REENTRANT, HL_LOCK_REENTRANT);
}

struct fair_queue {
    const struct scene *scene;
    int length;
};

/* "{name}", as it stands in the names of the queue's keys. */
static inline const char *fair_braced(const struct scene *scene)
{
    static char braced[128];
    bool is_braced = strchr(scene->name, '{') != NULL;

    snprintf(braced, sizeof braced, "%s%s%s", is_braced ? "" : "{", scene->name,
             is_braced ? "" : "}");
    return braced;
}

static inline bool fair_queue_has(void *arg)
{
    const struct fair_queue *queue = arg;

    return redis_int(server, "LLEN redisson_lock_queue:%s", fair_braced(queue->scene)) >=
               queue->length ||
           scene_is_over(queue->scene);
}

static inline struct actor *fair_wait(const struct scene *scene, hl_lock *lock, hl_cancel *cancel,
                                      int length)
{
    struct fair_queue queue = {scene, length};
    struct actor *actor =
        actor_start_acquire(lock, ACQUIRE(.wait_ms = scene_wait_ms(scene), .cancel = cancel));

    check(wait_until(fair_queue_has, &queue, 10000) || !scene->is_strict);
    return actor;
}

/* Of two waiters the first leaves, and the second has to wait for longer than it knew. */
static inline void use_fair_queue(struct scene *scene)
{
    hl_lock *lock[] = {scene_lock(scene->client, HL_LOCK_FAIR, 0, scene->name),
                       scene_lock(scene->other, HL_LOCK_FAIR, 0, scene->name),
                       scene_lock(scene->third, HL_LOCK_FAIR, 0, scene->name)};
    hl_cancel *cancel = new_cancel();

    scene_ok(scene, hl_lock_acquire_for(lock[0], scene_wait_ms(scene), ERR));
    struct actor *first = fair_wait(scene, lock[1], cancel, 1);
    struct actor *second = fair_wait(scene, lock[2], NULL, 2);
    scene_ok(scene, hl_lock_acquire_with(
                        lock[0], ACQUIRE(.wait_ms = HL_NO_WAIT, .lease_ms = slow_ms(600000)), ERR));
    hl_cancel_fire(cancel);
    scene_expect(scene, actor_end(first), HL_ECANCELED);
    scene_ok(scene, hl_lock_release(lock[0], ERR));
    scene_ok(scene, hl_lock_release(lock[0], ERR));
    scene_ok(scene, actor_end(second));
    scene_ok(scene, actor_release(second, lock[2], NULL));
    actor_stop(first);
    actor_stop(second);
    for (int i = 0; i < 3; i++)
        hl_lock_free(lock[i]);
}

/* A waiter of ours gets the lock before one of Redisson's, whose end is near. */
static inline void use_fair_before_java(struct scene *scene)
{
    const char *braced = fair_braced(scene);
    hl_lock *lock[] = {scene_lock(scene->client, HL_LOCK_FAIR, 0, scene->name),
                       scene_lock(scene->other, HL_LOCK_FAIR, 0, scene->name)};

    scene_ok(scene, hl_lock_acquire_for(lock[0], scene_wait_ms(scene), ERR));
    struct actor *actor = fair_wait(scene, lock[1], NULL, 1);
    redis_do(server, "RPUSH redisson_lock_queue:%s java:1", braced);
    redis_do(server, "ZADD redisson_lock_timeout:%s 1 java:1", braced);
    scene_ok(scene, hl_lock_release(lock[0], ERR));
    scene_ok(scene, actor_end(actor));
    redis_do(server, "DEL redisson_lock_queue:%s redisson_lock_timeout:%s hirelock_fair:%s", braced,
             braced, braced);
    scene_ok(scene, actor_release(actor, lock[1], NULL));
    actor_stop(actor);
    for (int i = 0; i < 2; i++)
        hl_lock_free(lock[i]);
}

static inline void use_fair(struct scene *scene)
{
    use_kinds(scene, HL_LOCK_FAIR, HL_LOCK_FAIR);
    if (!scene_is_over(scene))
        use_fair_queue(scene);
    if (!scene_is_over(scene))
        use_fair_before_java(scene);
}

static inline void use_fenced(struct scene *scene)
{
    hl_lock *lock = scene_lock(scene->client, HL_LOCK_FENCED, 0, scene->name);

    use_kinds(scene, HL_LOCK_FENCED, HL_LOCK_FENCED);
    scene_ok(scene, hl_lock_raise_token(lock, 1000000, ERR));
    hl_lock_free(lock);
}

static inline void use_spin(struct scene *scene)
{
    use_kinds(scene, HL_LOCK_SPIN, HL_LOCK_SPIN);
}

static inline hl_lock *scene_redlock(hl_client *client, const char *name)
{
    hl_redlock_options options = HL_REDLOCK_OPTIONS_INIT;
    hl_lock *lock = NULL;

    options.flags = HL_REDLOCK_NESTS | HL_REDLOCK_NO_RESTART_DELAY;
    options.name = name;
    expect_ok(hl_redlock_new_with(&client, 1, &options, &lock, ERR));
    return lock;
}

static inline void use_redlock(struct scene *scene)
{
    hl_lock *first = scene_redlock(scene->client, scene->name);
    hl_lock *second = scene_redlock(scene->other, scene->name);

    use_two(scene, first, second);
    hl_lock_free(first);
    hl_lock_free(second);
}

/* A writer that reads as well, and goes on to read. */
static inline void use_both_halves(struct scene *scene)
{
    hl_lock *write = scene_lock(scene->client, HL_LOCK_WRITE, 0, scene->name);
    hl_lock *read = scene_lock(scene->client, HL_LOCK_READ, 0, scene->name);

    scene_ok(scene, hl_lock_acquire_for(write, scene_wait_ms(scene), ERR));
    scene_ok(scene, hl_lock_acquire_for(read, scene_wait_ms(scene), ERR));
    scene_ok(scene, hl_lock_release(write, ERR));
    scene_ok(scene, hl_lock_release(read, ERR));
    hl_lock_free(write);
    hl_lock_free(read);
}

static inline void use_rw(struct scene *scene)
{
    use_kinds(scene, HL_LOCK_READ, HL_LOCK_WRITE);
    if (!scene_is_over(scene))
        use_kinds(scene, HL_LOCK_WRITE, HL_LOCK_READ);
    if (!scene_is_over(scene))
        use_both_halves(scene);
}

static inline hl_lock *scene_multi(hl_client *client, hl_lock *members[2], const char *name)
{
    char second[64];
    hl_lock *both = NULL;

    snprintf(second, sizeof second, "%s.second", name);
    members[0] = scene_lock(client, HL_LOCK_REENTRANT, 0, name);
    members[1] = scene_lock(client, HL_LOCK_REENTRANT, 0, second);
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, ERR));
    return both;
}

static inline void use_multi(struct scene *scene)
{
    hl_lock *members[2][2];
    hl_lock *first = scene_multi(scene->client, members[0], scene->name);
    hl_lock *second = scene_multi(scene->other, members[1], scene->name);

    use_two(scene, first, second);
    hl_lock_free(first);
    hl_lock_free(second);
    for (int i = 0; i < 4; i++)
        hl_lock_free(members[i / 2][i % 2]);
}

static inline int take_unit(void *semaphore, int64_t wait_ms)
{
    return hl_semaphore_acquire_for(semaphore, 1, wait_ms, ERR);
}

static inline void use_semaphore(struct scene *scene)
{
    hl_semaphore *mine = NULL, *others = NULL;
    int64_t permits = 0;

    expect_ok(hl_semaphore_new(scene->client, scene->name, &mine, ERR));
    expect_ok(hl_semaphore_new(scene->other, scene->name, &others, ERR));
    struct scene_wait wait = {scene, take_unit, others, NULL};
    scene_ok(scene, hl_semaphore_try_set_permits(mine, 1, 0, ERR));
    scene_ok(scene, hl_semaphore_acquire_for(mine, 1, scene_wait_ms(scene), ERR));
    scene_wait_begin(&wait);
    scene_ok(scene, hl_semaphore_release(mine, 1, ERR));
    scene_wait_end(&wait);
    scene_ok(scene, hl_semaphore_release_if_exists(others, 1, ERR));
    scene_ok(scene, hl_semaphore_add_permits(mine, 1, ERR));
    scene_ok(scene, hl_semaphore_available(mine, &permits, ERR));
    scene_ok(scene, hl_semaphore_drain(mine, &permits, ERR));
    actor_stop(wait.actor);
    hl_semaphore_free(mine);
    hl_semaphore_free(others);
}

struct permit_wait {
    hl_permits *permits;
    hl_permit permit;
};

static inline int take_permit(void *arg, int64_t wait_ms)
{
    struct permit_wait *wait = arg;

    return hl_permits_acquire_for(wait->permits, wait_ms, &wait->permit, ERR);
}

struct scene_permits {
    const struct scene *scene;
    hl_permits *permits;
};

static inline bool scene_has_permit(void *arg)
{
    const struct scene_permits *permits = arg;
    int64_t available = 0;

    return (hl_permits_available(permits->permits, &available, NULL) == HL_OK && available == 1) ||
           scene_is_over(permits->scene);
}

/* A permit whose lease runs out; and the key expires, as a program of Redisson's may have it. */
static inline void use_permit_lease(struct scene *scene, hl_permits *permits)
{
    struct scene_permits ours = {scene, permits};
    hl_permit permit = {0};

    redis_do(server, "PEXPIRE %s 600000", scene->name);
    scene_ok(scene, hl_permits_acquire_with(
                        permits, ACQUIRE(.wait_ms = scene_wait_ms(scene), .lease_ms = slow_ms(100)),
                        &permit, ERR));
    check(wait_until(scene_has_permit, &ours, 10000) || !scene->is_strict);
}

static inline void use_permits(struct scene *scene)
{
    hl_permits *mine = NULL;
    hl_permit permit = {0};
    struct permit_wait others = {0};
    struct scene_renewal renewal = {scene, stats_of(scene->client).renewals};
    int64_t count = 0;

    expect_ok(hl_permits_new(scene->client, scene->name, &mine, ERR));
    expect_ok(hl_permits_new(scene->other, scene->name, &others.permits, ERR));
    struct scene_wait wait = {scene, take_permit, &others, NULL};
    scene_ok(scene, hl_permits_try_set_total(mine, 1, 0, ERR));
    scene_ok(scene, hl_permits_acquire_for(mine, scene_wait_ms(scene), &permit, ERR));
    check(wait_until(scene_is_renewed, &renewal, 10000));
    scene_wait_begin(&wait);
    scene_ok(scene, hl_permits_release(mine, &permit, ERR));
    scene_wait_end(&wait);
    if (others.permit.id[0]) {
        scene_ok(scene, hl_permits_update_lease(others.permits, &others.permit, 60000, ERR));
        scene_ok(scene, hl_permits_lease_left(others.permits, &others.permit, &count, ERR));
        scene_ok(scene, hl_permits_release(others.permits, &others.permit, ERR));
    }
    use_permit_lease(scene, mine);
    scene_ok(scene, hl_permits_acquired(mine, &count, ERR));
    scene_ok(scene, hl_permits_total(mine, &count, ERR));
    scene_ok(scene, hl_permits_add(mine, 1, ERR));
    scene_ok(scene, hl_permits_set_total(mine, 1, 0, ERR));
    scene_ok(scene, hl_permits_delete(mine, ERR));
    actor_stop(wait.actor);
    hl_permits_free(mine);
    hl_permits_free(others.permits);
}

static inline int take_latch(void *latch, int64_t wait_ms)
{
    return hl_latch_await_for(latch, wait_ms, ERR);
}

static inline void use_latch(struct scene *scene)
{
    hl_latch *mine = NULL, *others = NULL;
    int64_t count = 0;

    expect_ok(hl_latch_new(scene->client, scene->name, &mine, ERR));
    expect_ok(hl_latch_new(scene->other, scene->name, &others, ERR));
    struct scene_wait wait = {scene, take_latch, others, NULL};
    scene_ok(scene, hl_latch_try_set_count(mine, 2, ERR));
    scene_ok(scene, hl_latch_count_down(mine, ERR));
    scene_ok(scene, hl_latch_count(mine, &count, ERR));
    scene_wait_begin(&wait);
    scene_ok(scene, hl_latch_count_down(mine, ERR));
    scene_wait_end(&wait);
    scene_ok(scene, hl_latch_try_set_count(mine, 1, ERR));
    scene_ok(scene, hl_latch_delete(mine, ERR));
    actor_stop(wait.actor);
    hl_latch_free(mine);
    hl_latch_free(others);
}

#endif
