/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Commands of the caller's own that do strange things to their connection: no lock is touched, and
 * no command gets the reply to another. Servers rename commands, so no list of names helps. */

#include "support/command.h"
#include "support/events.h"

#include <stdatomic.h>
#include <stdio.h>

static struct events events;
static hl_client *client, *other;
static hl_lock *held, *others;

static void strange_start_with(const char *config)
{
    server_up_with(&(struct redis_options){.config = config});
    client = open_client(
        CLIENT(.request_timeout_ms = slow_ms(1000), .on_event = count_event, .arg = &events));
    other = open_client(NULL);
    held = new_lock(client, "held");
    others = new_lock(other, "x");
    redis_do(server, "SET n 5");
    expect_ok(hl_lock_acquire(held, ERR));
    expect_ok(hl_lock_acquire(others, ERR));
}

static void strange_start(void)
{
    strange_start_with("rename-command REPLCONF ACKNOWLEDGE\n"
                       "rename-command MULTI BEGIN\n"
                       "rename-command MONITOR OVERHEAR\n"
                       "rename-command PSUBSCRIBE HEAR\n"
                       "rename-command HELLO GREET\n"
                       "rename-command CLIENT CUSTOMER\n");
}

#define StrangeLaw(name) Test(strange_command, name, .init = strange_start, .fini = server_down)

/* The locks' connections carry on, and every answer belongs to its request. */
static void expect_locks_untouched(void)
{
    hl_lock *x = new_lock(client, "x"), *y = new_lock(client, "y");
    hl_stats stats = stats_of(client);

    expect_outcome(hl_lock_acquire_for(x, 0, NULL), HL_EBUSY);
    expect_ok(hl_lock_acquire(y, ERR));
    expect_held_by(client, y, 1);
    expect_ok(hl_lock_release(y, ERR));
    check(hl_lock_is_held(held, NULL));
    expect_held_by(client, held, 1);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(events_told(&events, HL_EVENT_LOST), 0);
    check_int(stats.reconnects, 0);
    free_lock(x);
    free_lock(y);
}

static void expect_strange(const hl_command *command, int expected)
{
    hl_reply *reply = NULL;

    expect_outcome(hl_client_command(client, command, &reply, NULL), expected);
    check(reply == NULL);
    expect_locks_untouched();
    check_str(
        reply_of(client, COMMAND(WORDS("GET", "n"), .key = "n", .flags = HL_COMMAND_READS))->text,
        "5");
}

StrangeLaw(without_a_reply_fails_by_itself)
{
    expect_strange(COMMAND(WORDS("ACKNOWLEDGE", "ACK", "0")), HL_EPROTO);
    expect_strange(COMMAND(WORDS("ACKNOWLEDGE", "GETACK", "*")), HL_EPROTO);
}

StrangeLaw(that_changes_what_its_connection_is_for_fails_by_itself)
{
    expect_strange(COMMAND(WORDS("BEGIN")), HL_EPROTO);
    expect_strange(COMMAND(WORDS("HEAR", "*")), HL_EPROTO);
    expect_strange(COMMAND(WORDS("GREET", "3")), HL_EPROTO);
}

StrangeLaw(that_silences_its_connection_is_in_doubt)
{
    expect_strange(COMMAND(WORDS("CUSTOMER", "REPLY", "OFF")), HL_EINDOUBT);
}

/* What it overhears comes unasked, before or behind the answer to its fence. */
StrangeLaw(that_overhears_all_is_left_with_its_connection)
{
    hl_reply *reply = NULL;
    int rc = hl_client_command(client, COMMAND(WORDS("OVERHEAR")), &reply, NULL);

    check(rc == HL_OK || rc == HL_EPROTO);
    hl_reply_free(reply);
    expect_locks_untouched();
    check_str(
        reply_of(client, COMMAND(WORDS("GET", "n"), .key = "n", .flags = HL_COMMAND_READS))->text,
        "5");
}

static atomic_int answered, wrong, right;

static void compare_reply(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    (void)err;
    if (code == HL_OK && strcmp(reply->text, arg) != 0)
        atomic_fetch_add(&wrong, 1);
    else if (code == HL_OK)
        atomic_fetch_add(&right, 1);
    atomic_fetch_add(&answered, 1);
}

static bool all_are_answered(void *arg)
{
    return atomic_load(&answered) == *(const int *)arg;
}

static void ignore_reply(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    (void)code, (void)reply, (void)err, (void)arg;
}

StrangeLaw(gives_no_reply_of_its_own_to_another_command)
{
    enum { MANY = 600 };
    static char texts[MANY][16];
    int all = MANY;

    for (int i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof texts[i], "text:%d", i);
        if (i % 97 == 50)
            expect_ok(hl_client_command_async(client, COMMAND(WORDS("ACKNOWLEDGE", "ACK", "0")),
                                              ignore_reply, NULL));
        expect_ok(hl_client_command_async(
            client, COMMAND(WORDS("ECHO", texts[i]), .flags = HL_COMMAND_READS), compare_reply,
            texts[i]));
    }
    check(wait_until(all_are_answered, &all, 30000));
    check_int(atomic_load(&wrong), 0);
    check_int(atomic_load(&right), MANY);
    expect_locks_untouched();
}

StrangeLaw(that_blocks_holds_up_no_lock)
{
    expect_ok(hl_client_command_async(client, COMMAND(WORDS("BLPOP", "list", "0"), .key = "list"),
                                      ignore_reply, NULL));
    check(redis_wait_int(
        server, 1, 5000, "EVAL %s 0",
        "return tonumber(redis.call('INFO', 'clients'):match('blocked_clients:(%d+)'))"));
    expect_locks_untouched();
    redis_do(server, "RPUSH list x");
}

static int ended_with;

static void note_end(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    (void)reply, (void)err, (void)arg;
    ended_with = code;
}

StrangeLaw(under_way_ends_with_the_client)
{
    expect_ok(hl_client_command_async(client, COMMAND(WORDS("BLPOP", "list", "0"), .key = "list"),
                                      note_end, NULL));
    expect_ok(hl_lock_release(held, ERR));
    free_lock(held);
    close_client(client);
    check(ended_with == HL_EINDOUBT || ended_with == HL_ECANCELED);
}

static bool client_is_whole(void *arg)
{
    return hl_client_ping(arg, 1000, NULL) == HL_OK;
}

struct seen {
    unsigned lanes;
    bool is_connected;
};

static void see_node(const hl_node *node, void *arg)
{
    struct seen *seen = arg;

    seen->lanes = node->lanes;
    seen->is_connected = node->is_connected;
}

/* It is in no figure of the locks' connections, and its loss is no event. */
SingleLaw(strange_command, goes_by_a_connection_that_counts_as_none_of_the_locks)
{
    struct seen seen = {0};
    char id[24];

    client = open_client(CLIENT(.client_name = "counted", .on_event = count_event, .arg = &events));
    check(client_is_whole(client));
    int before = redis_clients(server, REDIS_NORMAL, "counted");
    snprintf(id, sizeof id, "%lld",
             (long long)reply_of(client, COMMAND(WORDS("CLIENT", "ID")))->integer);
    check_int(redis_clients(server, REDIS_NORMAL, "counted"), before + 1);
    check_int(stats_of(client).lanes_now, 1);
    check_int(hl_client_nodes(client, see_node, &seen), 1);
    check_int(seen.lanes, 1);
    redis_do(server, "CLIENT KILL ID %s", id);
    check(reply_of(client, COMMAND(WORDS("PING"), .flags = HL_COMMAND_READS)) != NULL);
    check_int(hl_client_nodes(client, see_node, &seen), 1);
    check(seen.is_connected);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    check_int(stats_of(client).reconnects, 0);
}
