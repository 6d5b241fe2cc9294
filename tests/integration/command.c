/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Commands of the caller's own: their routes, their replies, and those that are refused. */

#include "support/command.h"
#include "support/events.h"

#include <stdatomic.h>
#include <string.h>

Law(command, gives_the_reply_as_a_tree)
{
    hl_client *client = open_client(NULL);
    redis_do(server, "RPUSH list one two");

    const hl_reply *reply =
        reply_of(client, COMMAND(WORDS("LRANGE", "list", "0", "-1"), .key = "list"));
    check_int(reply->kind, HL_REPLY_ARRAY);
    check_int(reply->element_count, 2);
    check_str(reply->elements[1]->text, "two");
    check_int(reply->elements[1]->length, 3);
    check_int(reply->elements[1]->kind, HL_REPLY_TEXT);
    reply = reply_of(client, COMMAND(WORDS("LLEN", "list"), .key = "list"));
    check_int(reply->kind, HL_REPLY_INTEGER);
    check_int(reply->integer, 2);
    reply = reply_of(client, COMMAND(WORDS("LINDEX", "list", "7"), .key = "list"));
    check_int(reply->kind, HL_REPLY_NIL);
    reply = reply_of(client, COMMAND(WORDS("TYPE", "list"), .key = "list"));
    check_int(reply->kind, HL_REPLY_STATUS);
    check_str(reply->text, "list");
    reply = reply_of(client, COMMAND(WORDS("HSCAN", "none", "0"), .key = "none"));
    check_str(reply->elements[0]->text, "0");
    check_int(reply->elements[1]->kind, HL_REPLY_ARRAY);
    check_int(reply->elements[1]->element_count, 0);
}

Law(command, goes_to_the_node_of_its_key)
{
    static const char *const names[] = {"area", "bay", "cask", "den"}; /* at several masters */
    hl_client *client = open_client(CLIENT(.name_prefix = "unused:"));

    for (int i = 0; i < 4; i++) {
        reply_of(client, COMMAND(WORDS("SET", names[i], names[i]), .key = names[i]));
        check_str(redis_str(server, "GET %s", names[i]), names[i]);
    }
}

Law(command, sends_words_of_any_bytes)
{
    static const char *const words[] = {"SET", "a\0b", "\xff\0\n"};
    static const size_t lengths[] = {3, 3, 3};
    hl_client *client = open_client(NULL);

    reply_of(client, COMMAND(.words = words, .word_count = 3, .lengths = lengths, .key = "a\0b",
                             .key_length = 3));
    const hl_reply *reply =
        reply_of(client, COMMAND(.words = (const char *const[]){"GET", "a\0b"}, .word_count = 2,
                                 .lengths = lengths, .key = "a\0b", .key_length = 3,
                                 .flags = HL_COMMAND_READS));
    check_int(reply->length, 3);
    check(memcmp(reply->text, "\xff\0\n", 4) == 0);
}

struct sum {
    hl_client *client;
    int64_t keys, nodes;
};

static void sum_node(const hl_node *node, void *arg)
{
    struct sum *sum = arg;

    if (node->role != HL_NODE_MASTER)
        return;
    sum->nodes++;
    sum->keys += reply_of(sum->client, COMMAND(WORDS("DBSIZE"), .node = node->address))->integer;
}

Law(command, goes_to_each_node_by_its_address)
{
    hl_client *client = open_client(NULL);
    struct sum sum = {.client = client};

    for (int i = 0; i < 30; i++)
        redis_do(server, "SET key:%d 1", i);
    check(hl_client_nodes(client, sum_node, &sum) >= 1);
    check(sum.nodes >= 1);
    check_int(sum.keys, 30);
}

Law(command, for_an_unknown_node_is_not_sent)
{
    hl_client *client = open_client(NULL);
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(
        hl_client_command(client, COMMAND(WORDS("DBSIZE"), .node = "203.0.113.1:1"), &reply, &err),
        HL_ENOENT);
    check_str(err.text, "command 'DBSIZE': no node in use has this address");
    check(reply == NULL);
}

Law(command, that_one_connection_for_all_cannot_carry_is_refused)
{
    static const char *const refused[][4] = {
        {"SUBSCRIBE", "x"},     {"Multi"},      {"AUTH", "x"},      {"SELECT", "1"},
        {"CLIENT", "reply"},    {"HELLO", "3"}, {"MONITOR"},        {"RESET"},
        {"REPLCONF", "GETACK"}, {"QUIT"},       {"script", "Debug"}};
    hl_client *client = open_client(NULL);

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        size_t count = 0;
        hl_reply *reply = NULL;
        hl_error err = HL_ERROR_INIT;
        while (count < 4 && refused[i][count])
            count++;
        expect_outcome(hl_client_command(client, COMMAND(.words = refused[i], .word_count = count),
                                         &reply, &err),
                       HL_EINVAL);
        check_has(err.text, "it may not be sent");
    }
    reply_of(client, COMMAND(WORDS("CLIENT", "ID")));
}

Law(command, with_bad_arguments_is_refused)
{
    hl_client *client = open_client(NULL);
    hl_reply *reply = NULL;
    const char *const none[] = {"GET", NULL};

    expect_outcome(hl_client_command(client, NULL, &reply, NULL), HL_EINVAL);
    expect_outcome(hl_client_command(client, COMMAND(WORDS("PING")), NULL, NULL), HL_EINVAL);
    expect_outcome(hl_client_command(NULL, COMMAND(WORDS("PING")), &reply, NULL), HL_EINVAL);
    expect_outcome(hl_client_command(client, COMMAND(.word_count = 1), &reply, NULL), HL_EINVAL);
    expect_outcome(hl_client_command(client, COMMAND(WORDS()), &reply, NULL), HL_EINVAL);
    expect_outcome(hl_client_command(client, COMMAND(.words = none, .word_count = 2), &reply, NULL),
                   HL_EINVAL);
    expect_outcome(
        hl_client_command(client, COMMAND(WORDS("PING"), .key = "a", .node = "b"), &reply, NULL),
        HL_EINVAL);
    expect_outcome(
        hl_client_command(client, COMMAND(WORDS("PING"), .timeout_ms = -1), &reply, NULL),
        HL_EINVAL);
    expect_outcome(hl_client_command(client, COMMAND(WORDS("PING"), .flags = 4), &reply, NULL),
                   HL_EINVAL);
    expect_outcome(hl_client_command_async(client, COMMAND(WORDS("PING")), NULL, NULL), HL_EINVAL);
    check(reply == NULL);
    hl_reply_free(NULL);
}

Law(command, fails_at_once_with_the_servers_error)
{
    hl_client *client = open_client(CLIENT(.outage_timeout_ms = slow_ms(60000)));
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;
    uint64_t commands = stats_of(client).commands;

    expect_outcome(hl_client_command(client, COMMAND(WORDS("GET"), .key = "x"), &reply, &err),
                   HL_ESERVER);
    check_has(err.text, "command 'GET': ERR wrong number of arguments");
    expect_outcome(hl_client_command(client, COMMAND(WORDS("NONSENSE")), &reply, &err), HL_ESERVER);
    check_has(err.text, "unknown command");
    expect_outcome(
        hl_client_command(
            client,
            COMMAND(WORDS("EVALSHA", "0000000000000000000000000000000000000000", "1", "x"),
                    .key = "x"),
            &reply, &err),
        HL_ESERVER);
    check_has(err.text, "NOSCRIPT");
    redis_do(server, "SET x 1");
    expect_outcome(hl_client_command(client, COMMAND(WORDS("LLEN", "x"), .key = "x"), &reply, &err),
                   HL_ESERVER);
    check_has(err.text, "WRONGTYPE");
    check(reply == NULL);
    check(stats_of(client).commands - commands < 40); /* none was repeated; with greetings */
}

Law(command, may_have_a_reply_of_megabytes)
{
    hl_client *client = open_client(NULL);

    redis_do(server, "SETRANGE big 5000000 x");
    redis_do(server, "EVAL %s 1 list",
             "for i = 1, 50 do redis.call('RPUSH', KEYS[1], unpack(cjson.decode("
             "'['..string.rep('1,', 999)..'1]'))) end");
    check_int(reply_of(client, COMMAND(WORDS("GET", "big"), .key = "big"))->length, 5000001);
    check_int(
        reply_of(client, COMMAND(WORDS("LRANGE", "list", "0", "-1"), .key = "list"))->element_count,
        50000);
}

/* Six levels, where a lock's answers have four at most. */
Law(command, may_have_a_deep_reply)
{
    hl_client *client = open_client(NULL);
    const hl_reply *reply = reply_of(
        client, COMMAND(WORDS("EVAL", "return {{{{{{7}}}}}}", "1", "deep"), .key = "deep"));

    for (int level = 0; level < 6; level++)
        reply = reply->elements[0];
    check_int(reply->integer, 7);
}

static void expect_no_reply(hl_client *client, const hl_command *command)
{
    hl_reply *reply = NULL;

    expect_outcome(hl_client_command(client, command, &reply, NULL), HL_EPROTO);
    check(reply == NULL);
}

Law(command, with_a_reply_beyond_the_bounds_fails_at_once_and_the_next_one_is_answered)
{
    hl_client *client = open_client(CLIENT(.outage_timeout_ms = slow_ms(60000)));
    int64_t began = redis_calls(server, "get");

    redis_do(server, "SETRANGE big 20000000 x");
    expect_no_reply(client, COMMAND(WORDS("GET", "big"), .key = "big", .flags = HL_COMMAND_READS));
    expect_no_reply(client,
                    COMMAND(WORDS("EVAL", "return {{{{{{{{{7}}}}}}}}}", "1", "big"), .key = "big"));
    expect_no_reply(client, COMMAND(WORDS("EVAL",
                                          "local t = redis.call('GET', KEYS[1]):sub(1, 1e6) "
                                          "local all = {} for i = 1, 20 do all[i] = t end "
                                          "return all",
                                          "1", "big"),
                                    .key = "big"));
    check_int(reply_of(client, COMMAND(WORDS("STRLEN", "big"), .key = "big"))->integer, 20000001);
    check_int(redis_calls(server, "get") - began, 2); /* none was repeated */
}

/* A script may return any text as an error. What the library concludes from such words of its own
 * requests, the server has become a replica or the slot has moved, it does not conclude here. */
Law(command, whose_script_returns_an_error_tells_nothing_of_the_server)
{
    static const char *const errors[] = {"READONLY I am a replica", "MOVED 1 203.0.113.1:1",
                                         "CLUSTERDOWN it is down", "NOAUTH who are you",
                                         "LOADING I read"};
    static struct events events;
    hl_client *client = open_client(CLIENT(.on_event = count_event, .arg = &events));
    hl_lock *lock = new_lock(client, "stock"), *next = new_lock(client, "{stock}next");
    uint64_t nodes = 0;

    expect_ok(hl_lock_acquire(lock, ERR));
    reply_of(client, COMMAND(WORDS("TYPE", "stock"), .key = "stock"));
    nodes = stats_of(client).nodes_now;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        hl_reply *reply = NULL;
        hl_error err = HL_ERROR_INIT;
        int rc = hl_client_command(
            client,
            COMMAND(WORDS("EVAL", "return redis.error_reply(ARGV[1])", "1", "stock", errors[i]),
                    .key = "stock", .timeout_ms = slow_ms(200)),
            &reply, &err);
        check_msg(rc == (strncmp(errors[i], "NOAUTH", 6) == 0 ? HL_EDENIED : HL_ESERVER),
                  "%s: %s: %s", errors[i], hl_err_name(rc), err.text);
        check(reply == NULL);
        expect_ok(hl_lock_acquire(next, ERR));
        expect_ok(hl_lock_release(next, ERR));
        expect_held_by(client, lock, 1);
    }
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(stats_of(client).nodes_now, nodes);
    expect_ok(hl_lock_release(lock, ERR));
}

static atomic_int answered, wrong;

static void count_reply(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    (void)err;
    if (code != HL_OK || reply->kind != HL_REPLY_INTEGER || reply->integer != 7)
        atomic_fetch_add(&wrong, 1);
    (void)arg;
    atomic_fetch_add(&answered, 1);
}

static bool all_are_answered(void *arg)
{
    return atomic_load(&answered) == *(const int *)arg;
}

Law(command, is_async_many_times_at_once)
{
    int many = 20000;
    hl_client *client = open_client(NULL);

    redis_do(server, "SETRANGE seven 6 x");
    for (int i = 0; i < many; i++)
        expect_ok(hl_client_command_async(client, COMMAND(WORDS("STRLEN", "seven"), .key = "seven"),
                                          count_reply, NULL));
    check(wait_until(all_are_answered, &many, 60000));
    check_int(atomic_load(&wrong), 0);
}
