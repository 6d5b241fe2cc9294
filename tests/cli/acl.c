/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock acl: a user with exactly this rule runs each primitive, and nothing is denied to it.
 * That each right is used is shown beside (fault_sentinel_acl, fault_cluster_acl_exact), by the
 * same lists. */

#include "cli/said.h"
#include "fault/acl_pages.h"

static bool is_denied(void *arg)
{
    (void)arg;
    return acl_denied_at(server, NULL) != NULL;
}

/* The user `locker` has this rule, and a password. */
static void obey(const struct said *said)
{
    char rule[SAID_SIZE];

    expect_said(said, 0);
    snprintf(rule, sizeof rule, "%.*s", (int)strcspn(said->out, "\n"), said->out);
    redis_do(server, "ACL SETUSER locker reset resetchannels >password");
    redis_do(server, rule); /* it has no '%' */
    redis_do(server, "FLUSHALL");
    redis_do(server, "SCRIPT FLUSH");
    redis_do(server, "ACL LOG RESET");
}

static const char *url_of_locker(void)
{
    static char url[512];

    snprintf(url, sizeof url, "redis://locker:password@127.0.0.1:%d", redis_server_port(server));
    return url;
}

static void expect_enough(const struct page *page, const char *name)
{
    struct scene scene = {.name = name, .is_strict = true, .is_over = is_denied};

    redis_do(server, "FLUSHALL");
    scene.client = scene_open(url_of_locker(), true);
    scene.other = scene_open(url_of_locker(), true);
    scene.third = scene_open(url_of_locker(), true);
    page->use(&scene);
    check_msg(!is_denied(NULL), "%s: %s is denied", page->name, acl_denied_at(server, NULL));
    scene_close(&scene);
}

/* The rule that is for one server on TCP. */
static void acl_up(void)
{
    server_up_with(&(struct redis_options){.tcp = true, .plain = true});
}

#define AclLaw(name) Test(acl, name, .init = acl_up, .fini = server_down, .timeout = 120)

AclLaw(is_enough_for_each_primitive)
{
    obey(RUN("acl", "--prefix", "lock:"));
    for (int i = 0; i < PAGES; i++)
        expect_enough(pages[i], "lock:stock");
}

AclLaw(is_enough_for_names_with_a_brace)
{
    obey(RUN("acl", "--prefix", "lock:", "--braces"));
    expect_enough(&page_of_locks, "lock:{stock}");
    expect_enough(&page_of_fair_locks, "lock:{stock}");
    expect_enough(&page_of_locks, "lock:stock");
    obey(RUN("acl", "--prefix", "{a*b]}:"));
    expect_enough(&page_of_locks, "{a*b]}:stock");
    expect_enough(&page_of_fair_locks, "{a*b]}:stock");
}

AclLaw(is_enough_for_the_holders_tag)
{
    obey(RUN("acl", "--prefix", "lock:", "--holder-info"));
    hl_client *client = open_client_at(url_of_locker(), CLIENT(.flags = HL_CLIENT_HOLDER_INFO));
    expect_ok(hl_lock_acquire(new_kind(client, "lock:stock", HL_LOCK_REENTRANT), ERR));
    check(redis_wait_int(server, 1, 10000, "EXISTS hirelock_holder:{lock:stock}"));
    check(!is_denied(NULL));
}

AclLaw(is_for_no_other_name)
{
    obey(RUN("acl", "--prefix", "lock:"));
    hl_lock *lock = new_kind(open_client_at(url_of_locker(), NULL), "other", HL_LOCK_REENTRANT);
    expect_outcome(hl_lock_acquire(lock, NULL), HL_EDENIED);
}

AclLaw(has_each_right_of_each_page)
{
    const struct said *said = RUN("acl", "--prefix", "lock:");
    char word[128];

    for (int i = 0; i < PAGES; i++)
        for (const char *const *right = pages[i]->rights; *right; right++) {
            snprintf(word, sizeof word, " %s", *right);
            check_msg(strstr(said->out, word), "no %s", *right);
        }
    check_int(said_lines(said->out), 1);
}

AclLaw(refuses_what_no_rule_can_say)
{
    expect_said(RUN("acl", "--prefix", "a b"), 125);
    expect_said(RUN("acl", "--prefix", "a'b"), 125);
    expect_said(RUN("acl", "--user", "a b"), 125);
    expect_said(RUN("acl", "--user", ""), 125);
    expect_said(RUN("acl", "word"), 125);
}

AclLaw(for_sentinels_is_another_rule)
{
    const struct said *said = RUN("acl", "--sentinels", "--user", "watcher");
    expect_said(said, 0);
    check_has(said->out, "ACL SETUSER watcher on resetkeys resetchannels &+switch-master");
    check_has(said->out, "+sentinel|get-master-addr-by-name");
    said = RUN("acl", "--url", "redis-sentinel://127.0.0.1:1/mymaster");
    expect_said(said, 0);
    check_has(said->err, "hirelock acl --sentinels");
}

Law(acl, helps)
{
    expect_help_fits("acl");
}
