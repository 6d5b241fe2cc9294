/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock acl: a user with exactly this rule runs each primitive, and nothing is denied to it.
 * That each right is used is shown beside (fault_sentinel_acl, fault_cluster_acl_exact), by the
 * same lists. */

#include "cli/scrape.h"
#include "cli/top_kit.h"
#include "fault/acl_pages.h"

#include <signal.h>

static bool is_denied(void *arg)
{
    (void)arg;
    return acl_denied_at(server, NULL) != NULL;
}

/* The user `locker` has this rule, but for one right of it (NULL: none), and a password. */
static void obey_but(const struct said *said, const char *but)
{
    char rule[SAID_SIZE], word[128];

    expect_said(said, 0);
    snprintf(rule, sizeof rule, "%.*s ", (int)strcspn(said->out, "\n"), said->out);
    if (but) {
        snprintf(word, sizeof word, " %s ", but);
        char *at = strstr(rule, word);
        check_msg(at, "the rule has no %s", but);
        memmove(at, at + strlen(but) + 1, strlen(at + strlen(but) + 1) + 1);
    }
    rule[strlen(rule) - 1] = '\0';
    redis_do(server, "ACL SETUSER locker reset resetchannels >password");
    redis_do(server, rule); /* it has no '%' */
    redis_do(server, "FLUSHALL");
    redis_do(server, "SCRIPT FLUSH");
    redis_do(server, "ACL LOG RESET");
}

static void obey(const struct said *said)
{
    obey_but(said, NULL);
}

static const char *url_of_locker(void)
{
    static char url[512];

    snprintf(url, sizeof url, "redis://locker:password@127.0.0.1:%d", redis_server_port(server));
    return url;
}

static void expect_enough(const struct page *page, const char *name)
{
    struct scene scene = {
        .name = name, .url = url_of_locker(), .is_strict = true, .is_over = is_denied};

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

#define AclLaw(name) Test(acl, name, .init = acl_up, .fini = server_down)
#define TopAclLaw(name) Test(acl, name, .init = acl_up, .fini = top_down)

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

AclLaw(is_enough_for_the_tags_of_holders_and_waiters)
{
    obey(RUN("acl", "--prefix", "lock:", "--holder-info"));
    expect_enough(&page_of_tags, "lock:stock");
    check_int(redis_calls(server, "set"), 2);
    obey(RUN("acl", "--prefix", "lock:", "--holder-info", "--braces"));
    expect_enough(&page_of_tags, "lock:{stock}");
}

/* Something of each kind that the commands look at. */
static void operator_scene(void)
{
    redis_do(server, "HSET lock:plain " JAVA ":1 1");
    redis_do(server, "HSET lock:fair " JAVA ":1 1");
    redis_do(server, "RPUSH redisson_lock_queue:{lock:fair} " JAVA ":2");
    redis_do(server, "HSET lock:read mode read " JAVA ":1 1");
    redis_do(server, "SET {lock:read}:" JAVA ":1:rwlock_timeout:1 1 PX 600000");
    redis_do(server, "SET lock:permits 3");
    redis_do(server, "ZADD {lock:permits}:timeout 9000000000000 0123456789abcdef");
    redis_do(server, "SET lock:classic word PX 600000");
    redis_do(server, "SET hirelock_waiter:{lock:plain}:" JAVA ":4 %s PX 600000",
             "1000 4711 web-1 worker");
}

/* Tags of waits for names of others are at the server, too. */
static void crowded_scene(void)
{
    operator_scene();
    redis_do(server, "SET hirelock_waiter:{other}:" JAVA ":4 %s PX 600000",
             "1000 4711 web-1 worker");
    redis_do(server, "HSET other " JAVA ":1 1");
}

static void operator_watch(const char *url)
{
    struct said *said = START("watch", "--url", url, "--prefix", "lock:", "plain");
    struct deadline deadline = deadline_of_wait(30000);
    int status = 0;

    while (!strchr(said_look(said)->out, '\n') && !said->err[0] && !deadline_is_over(deadline))
        deadline_nap();
    kill(said->pid, SIGTERM);
    check(spawn_reap(said->pid, 30000, &status));
}

/* All that an operator types in; unlock takes each thing away in the end. */
static void operator_work(const char *url)
{
    static const char *const names[] = {"plain", "fair", "read", "permits", "classic"};

    operator_scene();
    RUN("list", "--url", url, "--prefix", "lock:", "--classic");
    RUN("deadlocks", "--url", url, "--prefix", "lock:");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        RUN("inspect", "--url", url, "--prefix", "lock:", names[i]);
        RUN("unlock", "--url", url, "--prefix", "lock:", "--classic", "--yes", names[i]);
    }
    redis_do(server, "HSET lock:plain " JAVA ":1 1");
    operator_watch(url);
    RUN("wait", "--url", url, "--prefix", "lock:", "--timeout", "10ms", "plain");
    RUN("doctor", "--prefix", "lock:", "--url", url);
}

AclLaw(of_an_operator_is_for_all_names_without_a_prefix)
{
    obey(RUN("acl", "--operator"));
    operator_work(url_of_locker());
    operator_scene();
    redis_do(server, "HSET other{1} " JAVA ":1 1");
    expect_said(RUN("list", "--url", url_of_locker()), 0);
    expect_said(RUN("inspect", "--url", url_of_locker(), "other{1}"), 0);
    expect_said(RUN("deadlocks", "--url", url_of_locker()), 0);
    check_msg(!is_denied(NULL), "%s is denied", acl_denied_at(server, NULL));
}

AclLaw(of_an_operator_is_enough_for_the_commands_that_look)
{
    obey(RUN("acl", "--prefix", "lock:", "--operator"));
    operator_work(url_of_locker());
    struct exporter exporter = EXPORTER("--url", url_of_locker(), "--prefix", "lock:");
    await_survey(exporter);
    expect_series(scrape(exporter), "hirelock_up", 1);
    check_has(scrape(exporter), "check=\"eviction\"}");
    exporter_end(exporter, SIGTERM);
    check_msg(!is_denied(NULL), "%s is denied", acl_denied_at(server, NULL));
    operator_scene();
    const struct said *said =
        RUN("list", "--json", "--url", url_of_locker(), "--prefix", "lock:", "--classic");
    expect_said(said, 0);
    check_msg(said_lines(said->out) == 5, "%s", said->out);
    check_str(said->err, "");
    crowded_scene();
    said = RUN("list", "--json", "--url", url_of_locker(), "lock:*");
    expect_said(said, 0);
    check_int(said_lines(said->out), 4);
}

AclLaw(of_an_operator_leaves_waits_of_others_out)
{
    obey(RUN("acl", "--prefix", "lock:", "--operator"));
    crowded_scene();
    const struct said *said = RUN("deadlocks", "--url", url_of_locker());
    expect_said(said, 0);
    check_has(said->out, "web-1 4711 worker waits for lock:plain (");
    check_has(said->err, "the tags of 1 waits may not be read by this user");
    check_has(said->err, "--prefix");
    said = RUN("deadlocks", "--json", "--url", url_of_locker(), "--prefix", "lock:");
    expect_said(said, 0);
    check_int(said_lines(said->out), 1);
    check_str(said->err, "");
}

/* What deadlocks advises goes to the same server, and its words are no secret. */
AclLaw(of_an_operator_is_not_given_away_by_advice)
{
    char advice[600];

    obey(RUN("acl", "--prefix", "lock:", "--operator"));
    redis_do(server, "HSET lock:plain " JAVA ":1 1");
    redis_do(server, "SET hirelock_holder:{lock:plain} %s",
             JAVA ":1 4 1700000000000 4711 web-1 worker");
    redis_do(server, "SET hirelock_waiter:{lock:plain}:" JAVA ":4 %s",
             "1700000000000 4711 web-1 worker");
    const struct said *said = RUN("deadlocks", "--url", url_of_locker(), "--prefix", "lock:");
    expect_said(said, 1);
    snprintf(advice, sizeof advice,
             "    hirelock unlock --url redis://locker@127.0.0.1:%d --prefix lock: plain\n",
             redis_server_port(server));
    check_has(said->out, advice);
    check(!strstr(said->out, "password"));
    snprintf(advice, sizeof advice, "redis://127.0.0.1:%d/0?outage_timeout=9s",
             redis_server_port(server));
    said = RUN("deadlocks", "--url", advice, "--prefix", "lock:");
    check_has(said->out, "hirelock unlock --url 'redis://127.0.0.1:");
    check_has(said->out, "/0?outage_timeout=9s' --prefix lock: plain\n");
    said = RUN("deadlocks", "--prefix", "lock:"); /* HIRELOCK_URL is the other command's, too */
    check_has(said->out, "    hirelock unlock --prefix lock: plain\n");
}

/* Some surveys have ended. */
static void await_surveys(void)
{
    int64_t before = redis_calls(server, "scan");
    struct deadline deadline = deadline_of_wait(SCRAPE_LONG_MS);

    while (redis_calls(server, "scan") < before + 9 && !deadline_is_over(deadline))
        deadline_nap();
    check(redis_calls(server, "scan") >= before + 9);
}

TopAclLaw(of_an_operator_is_enough_for_top)
{
    char words[700];

    obey(RUN("acl", "--prefix", "lock:", "--operator"));
    crowded_scene();
    snprintf(words, sizeof words, "--prefix lock: --url %s", url_of_locker());
    top_start(words);
    await_surveys();
    top_await_line(0, "connected");
    top_await_line(1, "4 locks of ");
    check_msg(!is_denied(NULL), "%s is denied", acl_denied_at(server, NULL));
}

/* The number of keys is for hirelock top. */
static void operator_look_at_top(const char *url)
{
    struct deadline deadline = deadline_of_wait(SCRAPE_LONG_MS);
    char words[700];

    snprintf(words, sizeof words, "--prefix lock: --url %s", url);
    top_start(words);
    while (!is_denied(NULL) && !deadline_is_over(deadline))
        deadline_nap();
    top_close();
}

TopAclLaw(of_an_operator_has_no_right_that_is_not_used)
{
    const struct said *said = RUN("acl", "--prefix", "lock:", "--operator");

    for (const char *const *right = operator_rights; *right; right++) {
        obey_but(said, *right);
        if (strcmp(*right, "+dbsize") == 0)
            operator_look_at_top(url_of_locker());
        else
            operator_work(url_of_locker());
        check_msg(is_denied(NULL), "nothing is denied without %s", *right);
    }
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
