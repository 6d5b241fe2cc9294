/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Names: those of the hosts file, and name servers that are silent, slow, or answer by halves. */

#include "name_server.h"

#include "support/sentinel_view.h"

#define FIRST "nameserver 127.0.0.1\n"
#define BOTH "nameserver 127.0.0.1\nnameserver 127.0.0.2\n"

static void check_opens_in(int64_t ms, const char *format, int port)
{
    hl_client_options options = connection_options();
    char url[64];
    snprintf(url, sizeof url, format, port);
    options.connect_timeout_ms = ms;
    hl_client *client = open_client_at(url, &options);
    expect_ok(hl_client_ping(client, -1, ERR));
    close_client(client);
}

static void check_opens(const char *format, int port)
{
    check_opens_in(slow_ms(2000), format, port);
}

static struct redis_server *server_at(const char *bind, int port)
{
    char config[96];
    snprintf(config, sizeof config, "bind %s\nport %d\nrepl-diskless-sync-delay 0", bind, port);
    return redis_server_start(&(struct redis_options){.config = config});
}

static struct redis_server *server_on(const char *bind, int *ret_port)
{
    *ret_port = listener_free_port();
    return server_at(bind, *ret_port);
}

Test(network_names, of_the_hosts_file_may_be_ipv6)
{
    struct name_server names = {0};
    int port;
    name_server_start(&names, FIRST);
    server = server_on("::1", &port);
    check_opens("redis://six.test:%d", port);
    check_int(atomic_load(&names.questions), 0);
    redis_server_stop(server);
    name_server_stop(&names);
}

Test(network_names, are_asked_of_the_name_server)
{
    struct name_server names = {.has_a = true, .has_aaaa = true};
    int port;
    name_server_start(&names, FIRST);
    server = server_on("127.0.0.1", &port);
    check_opens("redis://redis.test:%d", port);
    redis_server_stop(server);
    name_server_stop(&names);
}

/* With more time than the name servers need. */
static void check_is_found(void)
{
    int port;
    server = server_on("127.0.0.1", &port);
    check_opens_in(slow_ms(20000), "redis://redis.test:%d", port);
    redis_server_stop(server);
}

Test(network_names, are_asked_of_the_second_server_when_the_first_is_silent)
{
    struct name_server silent = {0}, names = {.host = 2, .has_a = true, .has_aaaa = true};
    name_server_start(&silent, BOTH "options timeout:1");
    name_server_add(&names);
    check_is_found();
    check(atomic_load(&silent.questions) > 0);
    name_server_stop(&names);
    name_server_stop(&silent);
}

/* An open has one attempt. */
static void check_is_found_in_time(void)
{
    int port;
    server = server_on("127.0.0.1", &port);
    check_opens("redis://redis.test:%d", port);
    redis_server_stop(server);
}

Test(network_names, are_found_in_time_when_the_first_server_is_silent)
{
    struct name_server silent = {0}, names = {.host = 2, .has_a = true, .has_aaaa = true};
    name_server_start(&silent, BOTH);
    name_server_add(&names);
    check_is_found_in_time();
    check(atomic_load(&silent.questions) > 0);
    name_server_stop(&names);
    name_server_stop(&silent);
}

/* The host has IPv6, so that it asks for it. */
Test(network_names, are_found_in_time_when_questions_for_ipv6_are_dropped)
{
    struct name_server names = {.has_a = true};
    name_server_start(&names, FIRST);
    check(network_run("ip addr add 10.77.1.1/24 dev lo && ip addr add fd00:77::1/64 dev lo"));
    check_is_found_in_time();
    check(atomic_load(&names.questions_aaaa) > 0);
    name_server_stop(&names);
}

Test(network_names, are_found_in_time_when_a_packet_is_lost)
{
    struct name_server names = {.has_a = true, .has_aaaa = true, .loses = 1};
    name_server_start(&names, FIRST);
    check_is_found_in_time();
    check(atomic_load(&names.questions) > 2);
    name_server_stop(&names);
}

Test(network_names, are_found_at_a_server_that_always_takes_several_seconds)
{
    struct name_server names = {.has_a = true, .has_aaaa = true, .delay_ms = 3500};
    name_server_start(&names, FIRST);
    check_is_found();
    name_server_stop(&names);
}

Test(network_names, are_asked_of_the_second_server_when_the_first_refuses)
{
    struct name_server denial = {.has_a = true, .has_aaaa = true, .code = NAME_REFUSED};
    struct name_server names = {.host = 2, .has_a = true, .has_aaaa = true};
    name_server_start(&denial, BOTH);
    name_server_add(&names);
    check_is_found();
    check(atomic_load(&denial.questions) > 0);
    name_server_stop(&names);
    name_server_stop(&denial);
}

Test(network_names, are_asked_of_the_second_server_when_nothing_listens_at_the_first)
{
    struct name_server names = {.host = 2, .has_a = true, .has_aaaa = true};
    name_server_start(&names, BOTH);
    check_is_found();
    name_server_stop(&names);
}

Test(network_names, are_found_when_the_first_server_is_slow)
{
    struct name_server slow = {.has_a = true, .has_aaaa = true, .delay_ms = 1200};
    struct name_server names = {.host = 2, .has_a = true, .has_aaaa = true};
    name_server_start(&slow, BOTH "options timeout:1");
    name_server_add(&names);
    check_is_found();
    name_server_stop(&names);
    name_server_stop(&slow);
}

Test(network_names, are_found_when_the_address_comes_behind_the_word_that_there_is_no_ipv6)
{
    struct name_server names = {.has_a = true, .has_aaaa = true, .delay_ms = 600};
    name_server_start(&names, FIRST);
    check_is_found();
    name_server_stop(&names);
}

Test(network_names, are_asked_again_when_a_packet_is_lost)
{
    struct name_server names = {.has_a = true, .has_aaaa = true, .loses = 1};
    name_server_start(&names, FIRST "options timeout:1");
    check_is_found();
    check(atomic_load(&names.questions) > 2);
    name_server_stop(&names);
}

Test(network_names, with_many_addresses_are_asked_again_by_tcp)
{
    struct name_server names = {.has_a = true, .has_aaaa = true, .truncates = true};
    name_server_start(&names, FIRST);
    check_is_found();
    check(atomic_load(&names.questions_by_tcp) > 0);
    name_server_stop(&names);
}

/* Some name servers drop what they are asked about IPv6. A host without IPv6 does not ask. */
Test(network_names, are_not_asked_for_ipv6_where_the_host_has_none)
{
    struct name_server names = {.has_a = true};
    name_server_start(&names, FIRST);
    check(network_run("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && "
                      "ip addr add 10.77.1.1/24 dev lo"));
    check_is_found();
    check_int(atomic_load(&names.questions_aaaa), 0);
    name_server_stop(&names);
}

/* An open has one attempt; a client goes on, and the answer serves a later attempt. */
Test(network_names, with_half_an_answer_are_found_by_a_later_attempt)
{
    struct name_server names = {.has_a = true};
    hl_client_options options = connection_options();
    char url[64];
    int port;
    name_server_start(&names, FIRST "options timeout:1 attempts:1");
    server = server_on("127.0.0.1", &port);
    snprintf(url, sizeof url, "redis://redis.test:%d", port);
    options.flags = HL_CLIENT_LAZY;
    options.connect_timeout_ms = slow_ms(300);
    hl_client *client = open_client_at(url, &options);
    expect_ok(hl_client_ping(client, slow_ms(60000), ERR));
    close_client(client);
    redis_server_stop(server);
    name_server_stop(&names);
}

/* What the name servers do is no matter for the program's standard error. */
Test(network_names, leave_nothing_on_standard_error)
{
    struct name_server denial = {.has_a = true, .has_aaaa = true, .code = NAME_REFUSED};
    char path[] = "/tmp/hl-stderr-XXXXXX";
    hl_client *client = NULL;
    struct stat written;
    name_server_start(&denial, FIRST);
    int file = mkstemp(path), before = dup(STDERR_FILENO);
    check(file >= 0 && before >= 0);
    unlink(path);
    check(dup2(file, STDERR_FILENO) >= 0);
    int rc = hl_client_open("redis://redis.test:1234", NULL, &client, NULL);
    check(dup2(before, STDERR_FILENO) >= 0);
    expect_outcome(rc, HL_ECONN);
    check_int(fstat(file, &written), 0);
    check_int(written.st_size, 0);
    close(file);
    close(before);
    name_server_stop(&denial);
}

static void check_no_name(int64_t connect_timeout_ms, const char *text)
{
    hl_client_options options = connection_options();
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int64_t begin_ms = now_ms();
    options.connect_timeout_ms = connect_timeout_ms;
    options.outage_timeout_ms = 10 * connect_timeout_ms;
    expect_outcome(hl_client_open("redis://redis.test:1234", &options, &client, &err), HL_ECONN);
    check_msg(strstr(err.text, "connect redis.test:1234: ") == err.text && strstr(err.text, text),
              "%s", err.text);
    check(now_ms() - begin_ms < connect_timeout_ms + slow_ms(4000));
}

Test(network_names, that_do_not_exist_are_told)
{
    struct name_server names = {.has_a = true, .has_aaaa = true, .code = NAME_UNKNOWN};
    name_server_start(&names, FIRST);
    check_no_name(slow_ms(2000), "no address of this host name: Name or service not known");
    name_server_stop(&names);
}

Test(network_names, without_an_address_are_given_up_in_time)
{
    struct name_server names = {.has_a = false};
    name_server_start(&names, FIRST);
    check_no_name(slow_ms(300), "name server");
    check(atomic_load(&names.questions) > 0);
    name_server_stop(&names);
}

/* What is freed while its answer is still to come must not be touched again. */
Test(network_names, that_are_being_resolved_may_be_given_up_at_any_time)
{
    struct name_server names = {.has_a = false};
    hl_client_options options = connection_options();
    name_server_start(&names, FIRST);
    options.flags = HL_CLIENT_LAZY;
    options.connect_timeout_ms = slow_ms(30); /* over and over */
    hl_client *client = open_client_at("redis://redis.test:1234", &options);
    expect_outcome(hl_client_ping(client, slow_ms(300), ERR), HL_ECONN);
    close_client(client);
    options.connect_timeout_ms = slow_ms(5000);
    for (int i = 0; i < 20; i++) {
        int asked = atomic_load(&names.questions);
        client = open_client_at("redis://redis.test:1234", &options);
        struct deadline deadline = deadline_in(2000);
        while (i % 2 && atomic_load(&names.questions) == asked && !deadline_is_over(deadline))
            deadline_nap();
        close_client(client);
    }
    name_server_stop(&names);
}

static bool is_linked(void *port)
{
    return redis_replicates(server, *(int *)port);
}

/* As the endpoint of a managed primary does after a failover. */
Test(network_names, that_lead_to_another_server_take_holds_along)
{
    struct name_server names = {.has_a = true, .has_aaaa = true};
    hl_client_options options = connection_options();
    char url[64];
    int port;
    name_server_start(&names, FIRST);
    struct redis_server *first = server_on("127.0.0.1", &port);
    server = server_at("127.0.0.2", port);
    redis_do(server, "REPLICAOF 127.0.0.1 %d", port);
    check(wait_until(is_linked, &port, 60000));
    snprintf(url, sizeof url, "redis://redis.test:%d", port);
    options.connect_timeout_ms = options.outage_timeout_ms = slow_ms(60000);
    hl_client *client = open_client_at(url, &options);
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    check(redis_wait_replicas(first, 1, 30000));
    redis_do(server, "REPLICAOF NO ONE");
    redis_server_kill(first);
    atomic_store(&names.leads_to, 2);
    wait_stat(client, reconnects, 1);
    expect_held_by(client, lock, 1);
    check(hl_lock_is_held(lock, NULL));
    expect_ok(hl_lock_release(lock, ERR));
    free_lock(lock);
    close_client(client);
    redis_server_stop(first);
    redis_server_stop(server);
    name_server_stop(&names);
}

/* No server answers at the first address: it gets its share of the time, and then it is the
 * second's turn. */
Test(network_names, of_two_addresses_lead_to_the_one_that_answers)
{
    struct name_server names = {0};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000002)}};
    int fill[4], port;
    name_server_start(&names, FIRST);
    server = server_on("127.0.0.1", &port);
    int hole = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_port = htons((uint16_t)port);
    check_int(bind(hole, (struct sockaddr *)&address, sizeof address), 0);
    check_int(listen(hole, 0), 0);
    for (int i = 0; i < 4; i++) { /* a full queue drops what comes */
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&address, sizeof address);
    }
    check_opens("redis://two.test:%d", port);
    for (int i = 0; i < 4; i++)
        close(fill[i]);
    close(hole);
    redis_server_stop(server);
    name_server_stop(&names);
}
