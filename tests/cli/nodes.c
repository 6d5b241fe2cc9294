/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The commands that go through all nodes, at a cluster of which one node is away: they tell what
 * the others have, and that this is not all. */

#include "cli/scrape.h"
#include "support/topologies.h"

enum { AWAY = 1 }; /* the node that dies */

/* The nodes that live serve their slots all the same. */
static void part_up(void)
{
    cluster_up_with(&(struct cluster_options){.config = "cluster-require-full-coverage no",
                                              .without_replicas = true});
}

#define PartLaw(name) Test(nodes, name, .init = part_up, .fini = server_down)

/* A node that is away is waited for only so long. */
static const char *part_url(void)
{
    static char url[600];

    snprintf(url, sizeof url, "%s?outage_timeout=%dms", cluster_url(cluster), (int)slow_ms(2000));
    return url;
}

/* A name of this node, in the order of the masters. */
static const char *name_at(int node)
{
    return cluster_name_at(cluster_node(cluster, node), "stock");
}

static void lock_at_each(void)
{
    for (int i = 0; i < cluster_masters(cluster); i++)
        redis_do(cluster_node(cluster, i), "HSET %s " JAVA ":%d 1", name_at(i), i);
}

static bool has_noticed(void *node)
{
    return strstr(redis_str(node, "CLUSTER NODES"), "fail ") != NULL;
}

/* Two of three are there, and know it. */
static void lose_one(void)
{
    redis_server_kill(cluster_node(cluster, AWAY));
    cluster_notice_deaths(cluster);
    check(wait_until(has_noticed, cluster_node(cluster, 0), 60000));
    check(wait_until(has_noticed, cluster_node(cluster, 2), 60000));
}

/* On standard error: "127.0.0.1:7001 was not read: ..." */
static void expect_missed(const struct said *said)
{
    char text[100];

    snprintf(text, sizeof text,
             "127.0.0.1:%d was not read: ", redis_server_port(cluster_node(cluster, AWAY)));
    check_has(said->err, text);
    check_int(said_lines(said->err), 1);
}

PartLaw(that_live_are_listed)
{
    char names[3][100];

    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "%s ", name_at(i));
    lock_at_each();
    lose_one();
    const struct said *said = RUN("list", "--url", part_url());
    expect_said(said, 123);
    check_has(said->out, names[0]);
    check_has(said->out, names[2]);
    check_int(said_lines(said->out), 3);
    expect_missed(said);
    said = RUN("list", "--json", "--url", part_url());
    expect_said(said, 123);
    check_int(said_lines(said->out), 2);
    expect_missed(said);
}

/* An owner waits for its own lock, as the data have it. */
static void wait_at(int node)
{
    struct redis_server *at = cluster_node(cluster, node);
    const char *name = name_at(node);
    char tag[200];

    redis_do(at, "HSET %s " JAVA ":%d 1", name, node);
    /* The name has braces of its own, so the keys beside it have no others. */
    snprintf(tag, sizeof tag, JAVA ":%d 10%d 1700000000000 4711 web-1 t", node, node);
    redis_do(at, "SET hirelock_holder:%s %s", name, tag);
    redis_do(at, "SET hirelock_waiter:%s:" JAVA ":10%d %s", name, node,
             "1700000000000 4711 web-1 t");
}

PartLaw(that_live_have_their_deadlocks_told)
{
    wait_at(0);
    wait_at(2);
    const struct said *said = RUN("deadlocks", "--url", part_url());
    expect_said(said, 1);
    lose_one();
    said = RUN("deadlocks", "--url", part_url());
    expect_said(said, 123);
    check_int(count_of(said->out, "deadlock: 1 owner waits for itself\n"), 2);
    expect_missed(said);
    for (int i = 0; i < 3; i += 2)
        redis_do(cluster_node(cluster, i), "FLUSHALL");
    said = RUN("deadlocks", "--url", part_url());
    expect_said(said, 123);
    check_str(said->out, "");
    expect_missed(said);
}

/* So many nodes have this check. */
static int nodes_with_check(struct exporter exporter)
{
    return count_of(scrape(exporter), "check=\"version\"} ");
}

PartLaw(that_live_have_their_checks_exported_and_no_part_of_the_locks)
{
    static const char kinds[] = "hirelock_locks{kind=\"lock\"}";
    struct deadline deadline = deadline_of_wait(SCRAPE_LONG_MS);
    struct exporter exporter = EXPORTER("--url", part_url());

    lock_at_each();
    await_series(exporter, kinds, 3);
    check_int(nodes_with_check(exporter), 3);
    lose_one();
    await_series(exporter, "hirelock_up", 0);
    check(isnan(series_of(scrape(exporter), kinds)));
    while (nodes_with_check(exporter) != 2 && !deadline_is_over(deadline))
        deadline_nap();
    check_int(nodes_with_check(exporter), 2);
    check_int(count_of(scrape(exporter), "\nhirelock_server_round_trip_seconds_count{"), 3);
    check(isnan(series_of(scrape(exporter), "hirelock_locks_waiters")));
    exporter_end(exporter, SIGTERM);
}
