/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A host name whose look-up hangs, as at name servers that are silent, until the test ends it. What
 * hangs is getaddrinfo() of the names "hangs...". The hasty look-ups beside it hang, too, unless
 * the name says which of them answers.
 */

#include "support/census.h"
#include "support/kit.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/topologies.h"

#include <netdb.h>
#include <resolv.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static atomic_int begun, hanging; /* patient look-ups */
static atomic_int beside;         /* hasty ones that have begun */
static atomic_bool is_over;       /* they get an answer: 127.0.0.1 */
static atomic_bool fails;         /* or none */

/* The linker puts it in the place of getaddrinfo() (CMakeLists.txt). */
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);

/* A name server has less time in the threads of these than elsewhere. */
static bool is_hasty(void)
{
    return _res.retrans == 1 && _res.options & RES_NORELOAD;
}

static bool hangs(const char *host, int family)
{
    if (atomic_load(&is_over))
        return false;
    if (!is_hasty())
        return true;
    return strcmp(host, family == AF_INET ? "hangs.but.ipv4" : "hangs.but.hasty") != 0;
}

static void hasty_look_up(const char *host, int family)
{
    atomic_fetch_add(&beside, 1);
    while (hangs(host, family))
        deadline_nap();
}

static void patient_look_up(const char *host)
{
    atomic_fetch_add(&hanging, 1);
    atomic_fetch_add(&begun, 1);
    while (hangs(host, AF_UNSPEC))
        deadline_nap();
    atomic_fetch_sub(&hanging, 1);
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses)
{
    if (strncmp(host, "hangs", 5) != 0 || hints->ai_flags & AI_NUMERICHOST)
        return __real_getaddrinfo(host, service, hints, ret_addresses);
    if (is_hasty())
        hasty_look_up(host, hints->ai_family);
    else
        patient_look_up(host);
    return atomic_load(&fails) ? EAI_AGAIN
                               : __real_getaddrinfo("127.0.0.1", service, hints, ret_addresses);
}

static bool has_begun(void *count)
{
    return atomic_load(&begun) >= *(int *)count;
}

static void await_begun(int count)
{
    check(wait_until(has_begun, &count, 30000));
}

/* The clients are closed; the thread of a look-up ends by itself. */
static void end_look_ups(void)
{
    atomic_store(&is_over, true);
    check(census_waits_for_no_thread());
}

static const char *url_of(const char *host)
{
    static char url[96];
    snprintf(url, sizeof url, "redis://%s:%d", host, redis_server_port(server));
    return url;
}

TcpLaw(name_hangs, and_the_open_ends_with_the_connect_timeout)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(
        hl_client_open(url_of("hangs.test"), CLIENT(.connect_timeout_ms = 100), &client, &err),
        HL_ECONN);
    check_has(err.text, "connect hangs.test:");
    check_has(err.text, "no answer of a name server within 100 ms");
    await_begun(1); /* its thread may come to it after the client is closed */
    check_int(atomic_load(&hanging), 1);
    end_look_ups();
}

TcpLaw(name_hangs, and_a_wait_ends_in_its_time_and_the_close_does_not_wait)
{
    hl_client *client = open_client_at(
        url_of("hangs.test"), CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = 100000000));
    hl_lock *lock = new_lock(client, "stock");

    await_begun(1);
    int rc = hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = 50), NULL);
    check(rc == HL_ETIMEDOUT || rc == HL_ECONN);
    free_lock(lock);
    close_client(client);
    check_int(atomic_load(&hanging), 1);
    end_look_ups();
}

static atomic_int given_up;

static void count_given_up(hl_log_level level, const char *text, void *arg)
{
    (void)level, (void)arg;
    atomic_fetch_add(&given_up, strstr(text, "no answer of a name server") != NULL);
}

static bool is_given_up(void *count)
{
    return atomic_load(&given_up) >= *(int *)count;
}

static hl_client *open_that_gives_up(int64_t pause_ms)
{
    return open_client_at(url_of("hangs.test"),
                          CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = slow_ms(500),
                                 .backoff_min_ms = pause_ms, .backoff_max_ms = pause_ms,
                                 .on_log = count_given_up, .log_level = HL_LOG_DEBUG));
}

static void expect_connected_by_one_look_up(hl_client *client)
{
    atomic_store(&is_over, true);
    expect_ok(hl_client_ping(client, slow_ms(60000), ERR));
    check_int(atomic_load(&begun), 1);
    close_client(client);
    end_look_ups();
}

/* Attempts that come while it hangs wait for it, and begin no other one. */
TcpLaw(name_hangs, and_its_answer_serves_the_attempt_that_waits_then)
{
    hl_client *client = open_that_gives_up(20);
    int three = 3;

    check(wait_until(is_given_up, &three, 30000));
    expect_connected_by_one_look_up(client);
}

TcpLaw(name_hangs, and_its_answer_in_a_pause_serves_the_next_attempt)
{
    hl_client *client = open_that_gives_up(slow_ms(2000));
    int one = 1;

    check(wait_until(is_given_up, &one, 30000));
    expect_connected_by_one_look_up(client);
}

static bool is_beside(void *count)
{
    return atomic_load(&beside) >= *(int *)count;
}

/* The patient look-up hangs to the end. */
static void expect_opened_at(const char *host)
{
    hl_client *client = open_client_at(url_of(host), CLIENT(.connect_timeout_ms = slow_ms(60000)));

    expect_ok(hl_client_ping(client, -1, ERR));
    check_int(atomic_load(&hanging), 1);
    close_client(client);
    end_look_ups();
}

/* A name server drops the question for IPv6. */
TcpLaw(name_hangs, and_its_ipv4_address_alone_is_found)
{
    expect_opened_at("hangs.but.ipv4");
}

/* The first name server is silent. */
TcpLaw(name_hangs, and_who_waits_less_long_for_a_name_server_finds_it)
{
    expect_opened_at("hangs.but.hasty");
}

/* However many attempts come and go. */
TcpLaw(name_hangs, and_each_way_to_ask_is_under_way_once)
{
    hl_client *client = open_that_gives_up(20);
    int two = 2, four = 4;

    check(wait_until(is_beside, &two, 30000));
    check(wait_until(is_given_up, &four, 30000));
    check_int(atomic_load(&beside), 2);
    expect_connected_by_one_look_up(client);
}

static bool is_none_hanging(void *arg)
{
    (void)arg;
    return atomic_load(&hanging) == 0;
}

/* It has been served; what its patient look-up says later may be out of date when it asks again. */
TcpLaw(name_hangs, and_a_later_answer_is_not_kept_for_one_who_was_served)
{
    hl_client *client =
        open_client_at(url_of("hangs.but.ipv4"), CLIENT(.connect_timeout_ms = slow_ms(60000)));

    atomic_store(&is_over, true);
    check(wait_until(is_none_hanging, NULL, 30000));
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    wait_stat(client, reconnects, 1);
    check_int(atomic_load(&begun), 2);
    close_client(client);
    end_look_ups();
}

TcpLaw(name_hangs, and_what_the_resolver_says_is_told)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    atomic_store(&fails, true);
    atomic_store(&is_over, true);
    expect_outcome(hl_client_open(url_of("hangs.test"), NULL, &client, &err), HL_ECONN);
    check_has(err.text, "connect hangs.test:");
    check_has(err.text, "no address of this host name: Temporary failure in name resolution");
}

ClusterLaw(name_hangs, and_the_cluster_is_found_by_another_name)
{
    char url[160];
    int port = redis_server_port(cluster_node(cluster, 0));

    snprintf(url, sizeof url, "redis-cluster://hangs1.test:%d,hangs2.test:%d,localhost:%d", port,
             port, port);
    hl_client *client = open_client_at(url, CLIENT(.connect_timeout_ms = slow_ms(4000)));
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    await_begun(1);
    check(atomic_load(&hanging) > 0);
    free_lock(lock);
    close_client(client);
    end_look_ups();
}

static void use_by_name(void)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;

    expect_ok(hl_client_open(url_of("localhost"), NULL, &client, ERR));
    expect_ok(hl_lock_new(client, "stock", &lock, ERR));
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    hl_lock_free(lock);
    expect_ok(hl_client_close(client));
}

/* The child has no thread of it, and asks anew. */
TcpLaw(name_hangs, and_a_forked_child_looks_names_up_all_the_same)
{
#ifdef __SANITIZE_THREAD__
    skip("a child of a process with threads may start none");
#endif
    int status = 0;

    hl_client *client = open_client_at(
        url_of("hangs.test"), CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = 100000000));
    await_begun(1);
    pid_t child = fork();
    if (child == 0) {
        use_by_name();
        expect_outcome(hl_client_close(client), HL_EFORKED);
        _exit(0);
    }
    check_int(waitpid(child, &status, 0), child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    use_by_name();
    check_int(atomic_load(&hanging), 1);
    atomic_store(&is_over, true);
    expect_ok(hl_client_ping(client, slow_ms(60000), ERR));
    close_client(client);
    end_look_ups();
}
