/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake sentinels beside a real server: answers that are no address or a wrong one, messages that
 * say nothing, lists that lead nowhere. The client believes none of them, and asks the next. */

#include "sentinel_kit.h"

#include <sys/wait.h>
#include <unistd.h>

TcpLaw(sentinel_lies, about_the_address_make_the_client_ask_the_next)
{
    static const struct {
        const char *address, *says;
        int code;
    } lies[] = {
        {"+OK\r\n", "no address", HL_EPROTO},
        {":7000\r\n", "no address", HL_EPROTO},
        {"$9\r\n127.0.0.1\r\n", "no address", HL_EPROTO},
        {"*0\r\n", "no address", HL_EPROTO},
        {"*1\r\n$9\r\n127.0.0.1\r\n", "no address", HL_EPROTO},
        {"*2\r\n$9\r\n127.0.0.1\r\n$-1\r\n", "no address", HL_EPROTO},
        {"*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n", "no address", HL_EPROTO},
        {"*2\r\n$9\r\n127.0.0.1\r\n$2\r\n-1\r\n", "no address", HL_EPROTO},
        {"*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n", "no address", HL_EPROTO},
        {"*2\r\n$0\r\n\r\n$4\r\n6379\r\n", "no address", HL_EPROTO},
        {"*2\r\n$3\r\na b\r\n$4\r\n6379\r\n", "no address", HL_EPROTO},
        {"*2\r\n:1\r\n$4\r\n6379\r\n", "no address", HL_EPROTO},
        {"*-1\r\n", "it knows no master 'mymaster'", HL_ESERVER},
        {"-ERR No such master with that name\r\n", "No such master", HL_ESERVER},
        {"-IDONTKNOW I have not enough information\r\n", "IDONTKNOW", HL_ESERVER},
        {"-NOPERM no\r\n", "NOPERM", HL_EDENIED},
        {"-NOAUTH Authentication required.\r\n", "give sentinel_password", HL_EDENIED},
        {"?\r\n", "does not speak Redis", HL_EPROTO},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct manner manner = {.address = lies[i].address, .epoch = epoch_1, .peers = no_peers};
        struct fake_server *liar = fake_server_start(sentinel_answer, &manner);
        expect_refused(url_of(liar, NULL), NULL, lies[i].code, lies[i].says);
        hl_client *client = open_client_at(url_of(liar, new_honest_sentinel()), NULL);
        expect_ok(hl_client_ping(client, -1, ERR));
        close_client(client);
        fake_server_stop(liar);
    }
}

TcpLaw(sentinel_lies, that_break_off_make_the_client_ask_the_next)
{
    static const enum fake_then ways[] = {FAKE_CLOSE, FAKE_RESET, FAKE_STALL};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct manner manner = {
            .address = "*2\r\n$9\r\n127.0", .epoch = epoch_1, .peers = no_peers, .then = ways[i]};
        struct fake_server *liar = fake_server_start(sentinel_answer, &manner);
        hl_client *client = open_client_at(url_of(liar, new_honest_sentinel()), NULL);
        expect_ok(hl_client_ping(client, -1, ERR));
        close_client(client);
        fake_server_stop(liar);
    }
}

/* An empty port; the sentinel itself, which is no master; a replica is in fault_sentinel. */
TcpLaw(sentinel_lies, that_lead_to_no_master_make_the_client_ask_the_next)
{
    struct redis_server *sentinel =
        stop_at_end(redis_server_start(&(struct redis_options){.tcp = true, .sentinel = true}),
                    (void (*)(void *))redis_server_stop);
    static struct manner to_nowhere = {.epoch = epoch_1, .peers = no_peers};
    static struct manner to_itself = {.epoch = epoch_1, .peers = no_peers};

    to_nowhere.address = address_of(1);
    to_itself.address = address_of(redis_server_port(sentinel));

    struct fake_server *first = new_sentinel(&to_nowhere), *second = new_sentinel(&to_itself);
    expect_refused(url_of(first, NULL), NULL, HL_ECONN, "127.0.0.1:1: connection refused");
    expect_refused(url_of(second, NULL), NULL, HL_ESERVER,
                   "the server is a sentinel, not a master");
    expect_ok(hl_client_ping(open_client_at(url_of(first, new_honest_sentinel()), NULL), -1, ERR));
    expect_ok(hl_client_ping(open_client_at(url_of(second, new_honest_sentinel()), NULL), -1, ERR));
}

TcpLaw(sentinel_lies, about_the_epoch_do_no_harm)
{
    static const char *const epochs[] = {
        "-NOPERM no\r\n",
        "+OK\r\n",
        "*0\r\n",
        "*1\r\n$12\r\nconfig-epoch\r\n",
        "$-1\r\n",
        "*2\r\n$12\r\nconfig-epoch\r\n$1\r\nx\r\n",
        "*2\r\n$12\r\nconfig-epoch\r\n$20\r\n99999999999999999999\r\n",
        "*2\r\n$12\r\nconfig-epoch\r\n$2\r\n-7\r\n"};
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        struct manner manner = {.address = address_of(redis_server_port(server)),
                                .epoch = epochs[i],
                                .peers = no_peers};
        hl_client *client = open_client_at(url_of(new_sentinel(&manner), NULL), NULL);
        expect_ok(hl_client_ping(client, -1, ERR));
        close_client(client);
    }
}

TcpLaw(sentinel_lies, about_other_sentinels_do_no_harm)
{
    static const char *const lists[] = {
        "+OK\r\n",
        "$-1\r\n",
        "*1\r\n+OK\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n*1\r\n$2\r\nip\r\n",
        "*1\r\n*4\r\n$2\r\nip\r\n$3\r\na b\r\n$4\r\nport\r\n$1\r\n1\r\n",
        "*1\r\n*4\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$6\r\n123456\r\n",
        "*1\r\n*4\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$1\r\n1\r\n",
        "-NOPERM no\r\n"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        static struct events events;
        struct manner manner = {
            .address = address_of(redis_server_port(server)), .epoch = epoch_1, .peers = lists[i]};
        struct fake_server *liar = new_sentinel(&manner);
        hl_client *client =
            open_client_at(url_of(liar, NULL), CLIENT(.on_event = count_event, .arg = &events));
        int connected = events_told(&events, HL_EVENT_CONNECTED);
        redis_do(server, "CLIENT KILL TYPE normal");
        check(events_wait(&events, HL_EVENT_CONNECTED, connected + 1, 20000));
        close_client(client);
    }
}

TcpLaw(sentinel_lies, in_messages_do_no_more_than_make_the_client_ask)
{
    static const char *const messages[] = {"mymaster",
                                           "",
                                           "mymaster2 127.0.0.1 1 127.0.0.1 2",
                                           "mymaster x",
                                           "mymaster 127.0.0.1 1 127.0.0.1 1",
                                           "mymaster \xff\xff\xff\xff"};
    static struct events events;
    struct fake_server *sentinel = new_honest_sentinel();
    hl_client *client =
        open_client_at(url_of(sentinel, NULL), CLIENT(.on_event = count_event, .arg = &events));

    check(fake_server_wait_count(sentinel, "SUBSCRIBE +switch-master", 1, 10000));
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        int asked = fake_server_count(sentinel, "SUBSCRIBE +switch-master");
        fake_server_publish(sentinel, "+switch-master", messages[i]);
        if (i >= 3)
            check(fake_server_wait_count(sentinel, "SUBSCRIBE +switch-master", asked + 1, 10000));
    }
    check_int(fake_server_count(sentinel, "SENTINEL MASTER"), 4); /* once for each of its name */
    expect_ok(hl_client_ping(client, -1, ERR));
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
}

/* In each state of the search: silent to the connection, to the question, named and watched. */
TcpLaw(sentinel_end, in_each_state_is_quick_for_a_close_and_for_a_forked_child)
{
    struct manner silent = {.address = "", .epoch = epoch_1, .peers = no_peers, .then = FAKE_STALL};
    struct fake_server *nobody = fake_server_start(NULL, NULL);
    struct manner named = {
        .address = address_of(fake_server_port(nobody)), .epoch = epoch_1, .peers = no_peers};
    struct fake_server *sentinels[] = {new_sentinel(&silent), new_sentinel(&named),
                                       new_honest_sentinel()};

    fake_server_play(nobody, &(struct fake_step){"AUTH", NULL, 0, FAKE_STALL, 0}, 1);
    for (size_t i = 0; i < 3; i++) {
        hl_client *client = NULL;
        expect_ok(hl_client_open(url_of(sentinels[i], NULL),
                                 CLIENT(.flags = HL_CLIENT_LAZY, .connect_timeout_ms = 600000),
                                 &client, ERR));
        check(fake_server_wait_count(sentinels[i], "SENTINEL MASTER", 1, 10000));
        pid_t child = fork();
        if (child == 0)
            _exit(hl_client_ping(client, 0, NULL) == HL_EFORKED ? 0 : 1);
        int status = 1;
        check(waitpid(child, &status, 0) == child);
        check_int(status, 0);
        expect_ok(hl_client_close(client));
    }
    fake_server_stop(nobody);
}
