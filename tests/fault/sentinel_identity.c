/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake sentinels, at one of whose addresses another deployment's comes up, which has a master of
 * the same name; and replacements, which are no strangers. A sentinel is known by its id. */

#include "sentinel_kit.h"

#include "support/recorder.h"

#include <stdlib.h>

/* Ids of the fakes; digits of the texts below. */
enum { OURS = 1, OTHER = 2, NEXT = 3, STRANGER = 8, PEER_OF_STRANGER = 9, NOBODY = 0 };

/* A sentinel with an id, which knows one other. */
struct known {
    struct manner manner; /* the first: sentinel_answer() reads it */
    _Atomic int id;
};

static bool known_answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    struct known *known = arg;
    char text[64];

    if (!resp_command_begins(command, "SENTINEL MYID"))
        return sentinel_answer(command, reply, &known->manner);
    snprintf(text, sizeof text, "$40\r\n%040d\r\n", known->id);
    fake_reply_text(reply, known->id == NOBODY ? refused : text);
    return true;
}

static const char *peer_with(int id, int port)
{
    char *text = sentinel_text(), digits[16];
    int length = snprintf(digits, sizeof digits, "%d", port);

    snprintf(text, 256,
             "*1\r\n*6\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$%d\r\n%s\r\n$5\r\nrunid\r\n"
             "$40\r\n%040d\r\n",
             length, digits, id);
    return text;
}

static struct redis_server *new_master(void)
{
    return stop_at_end(redis_server_start(&(struct redis_options){.tcp = true}),
                       (void (*)(void *))redis_server_stop);
}

/* Two sentinels that know each other, and name `server`. */
struct duo {
    struct known known[2];
    struct fake_server *sentinel[2];
    struct redis_server *other; /* another master */
};

static struct duo duo;
static struct recorder lines;
static struct events events;

static void note_log(hl_log_level level, const char *text, void *arg)
{
    (void)arg;
    record_log(level, text, &lines);
}

static void duo_say(int i, int id, int peer, struct redis_server *master, int epoch)
{
    struct known *known = &duo.known[i];

    known->id = id;
    known->manner.epoch = epoch_of(epoch);
    known->manner.peers =
        peer == NOBODY ? no_peers : peer_with(peer, fake_server_port(duo.sentinel[1 - i]));
    known->manner.address = address_of(redis_server_port(master));
}

static hl_client *duo_open(void)
{
    lines = (struct recorder)RECORDER_INIT;
    for (int i = 0; i < 2; i++)
        duo.sentinel[i] = new_fake(known_answer, &duo.known[i]);
    duo.other = new_master();
    duo_say(0, OURS, OTHER, server, 3);
    duo_say(1, OTHER, OURS, server, 3);
    hl_client *client =
        open_client_at(url_of(duo.sentinel[0], duo.sentinel[1]),
                       CLIENT(.on_event = count_event, .arg = &events, .on_log = note_log,
                              .log_level = HL_LOG_INFO, .outage_timeout_ms = slow_ms(60000)));
    expect_watched(duo.sentinel[0], 1);
    return client;
}

/* The first one's connection is lost, as in a rolling restart. */
static void lose_first(void)
{
    fake_server_close_all(duo.sentinel[0], FAKE_CLOSE);
}

static bool says_stranger(void *arg)
{
    (void)arg;
    return recorder_says(&lines, "and knows none of the sentinels that are known");
}

static bool names_other(void *arg)
{
    (void)arg;
    return recorder_says(&lines, "names another master of 'mymaster'");
}

/* With a newer epoch, too: that of another deployment says nothing. */
TcpLaw(sentinel_strangers, at_an_address_of_a_sentinel_are_not_believed)
{
    hl_client *client = duo_open();
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    duo_say(0, STRANGER, PEER_OF_STRANGER, duo.other, 9);
    for (int i = 0; i < 3; i++) { /* whichever is asked first */
        int watched = fake_server_count(duo.sentinel[1], "SUBSCRIBE +switch-master");
        fake_server_close_all(duo.sentinel[0], FAKE_CLOSE);
        fake_server_close_all(duo.sentinel[1], FAKE_CLOSE);
        check(fake_server_wait_count(duo.sentinel[1], "SUBSCRIBE +switch-master", watched + 1,
                                     30000));
    }
    check(wait_until(says_stranger, NULL, 30000));
    expect_ok(hl_client_ping(client, -1, ERR));
    check(hl_lock_is_held(lock, NULL));
    check_int(names_other(NULL), false);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
    expect_ok(hl_lock_release(lock, ERR));
}

/* The master is down, and strangers are all that answer: the sentinels are only out of reach. */
TcpLaw(sentinel_strangers, alone_are_not_believed_either)
{
    hl_client *client = duo_open();

    for (int i = 0; i < 2; i++)
        duo_say(i, STRANGER + i, STRANGER + 1 - i, duo.other, 9);
    redis_server_kill(server);
    lose_first();
    check(wait_until(says_stranger, NULL, 30000));
    int asked = fake_server_count(duo.sentinel[1], "SENTINEL MASTER");
    check(fake_server_wait_count(duo.sentinel[1], "SENTINEL MASTER", asked + 3, 30000));
    check_int(names_other(NULL), false);
    redis_server_restart(server);
    for (int i = 0; i < 2; i++)
        duo_say(i, OURS + i, OTHER - i, server, 3);
    expect_ok(hl_lock_acquire(new_lock(client, "stock"), ERR));
}

static void expect_followed(hl_client *client)
{
    lose_first();
    check(wait_until(names_other, NULL, 30000));
    expect_ok(hl_client_ping(client, slow_ms(30000), ERR));
    check_int(says_stranger(NULL), false);
}

/* The first one is dead, and the second one, which was never asked before, knows only that. */
TcpLaw(sentinel_failover, is_believed_of_a_sentinel_that_others_told_of)
{
    hl_client *client = duo_open();

    duo_say(0, OURS, OTHER, duo.other, 4);
    duo.known[0].manner.address = "-ERR\r\n";
    duo_say(1, OTHER, NOBODY, duo.other, 4);
    expect_followed(client);
}

/* It was started without its files, and has another id. */
TcpLaw(sentinel_failover, is_believed_of_a_new_sentinel_that_knows_one_that_was_met)
{
    hl_client *client = duo_open();

    duo_say(0, NEXT, OTHER, duo.other, 4);
    duo.known[1].manner.address = "-ERR\r\n";
    expect_followed(client);
}

/* By an ACL they tell no ids. */
TcpLaw(sentinel_failover, is_believed_of_sentinels_that_tell_no_ids)
{
    hl_client *client = duo_open();

    duo_say(0, NOBODY, NOBODY, duo.other, 4);
    duo.known[1].manner.address = "-ERR\r\n";
    expect_followed(client);
}

/* What SENTINEL MASTER says of 127.0.0.1:port, after the server's last answer to INFO. */
static const char *master_with(int port, const char *run_id, int64_t age_ms)
{
    char *text = sentinel_text(), digits[2][16];
    int port_length = snprintf(digits[0], sizeof digits[0], "%d", port);
    int age_length = snprintf(digits[1], sizeof digits[1], "%d", (int)age_ms);

    snprintf(text, 256,
             "*10\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$%d\r\n%s\r\n$5\r\nrunid\r\n"
             "$40\r\n%s\r\n$12\r\ninfo-refresh\r\n$%d\r\n%s\r\n$12\r\nconfig-epoch\r\n$1\r\n3\r\n",
             port_length, digits[0], run_id, age_length, digits[1]);
    return text;
}

static const char *run_id_of(struct redis_server *asked)
{
    static char id[41];
    const char *at = strstr(redis_str(asked, "INFO server"), "run_id:");

    check(at != NULL);
    snprintf(id, sizeof id, "%s", at + strlen("run_id:"));
    return id;
}

static const char another_run[] = "8888888888888888888888888888888888888888";

/* Servers tell whole seconds. */
static bool has_run_for_a_while(void *asked)
{
    const char *at = strstr(redis_str(asked, "INFO server"), "uptime_in_seconds:");

    return at && strtol(at + strlen("uptime_in_seconds:"), NULL, 10) >= 4;
}

static hl_client *open_told(struct manner *manner, const char *master)
{
    manner->address = address_of(redis_server_port(server));
    manner->epoch = master;
    manner->peers = no_peers;
    return open_client_at(url_of(new_sentinel(manner), NULL),
                          CLIENT(.flags = HL_CLIENT_LAZY, .outage_timeout_ms = slow_ms(60000)));
}

/* The name or the address leads the sentinels elsewhere: two servers are two locks. */
TcpLaw(sentinel_masters, that_are_not_the_servers_that_sentinels_watch_are_not_used)
{
    static struct manner manner;
    int port = redis_server_port(server);
    hl_error err = HL_ERROR_INIT;

    check(wait_until(has_run_for_a_while, server, 60000));
    hl_client *client = open_told(&manner, master_with(port, another_run, 0));
    hl_lock *lock = new_lock(client, "stock");
    expect_outcome(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(1000)), &err), HL_ECONN);
    check_has(err.text, "it is another server (run id ");
    expect_free(lock);
    manner.epoch = master_with(port, run_id_of(server), 0);
    expect_ok(hl_lock_acquire_with(lock, ACQUIRE(.wait_ms = slow_ms(60000)), ERR));
}

/* The sentinels hear of that up to ten seconds later. */
TcpLaw(sentinel_masters, that_were_started_anew_are_used_at_once)
{
    static struct manner manner;
    int port = redis_server_port(server);

    check(wait_until(has_run_for_a_while, server, 60000));
    hl_client *client = open_told(&manner, master_with(port, another_run, 3600 * 1000));
    expect_ok(
        hl_lock_acquire_with(new_lock(client, "stock"), ACQUIRE(.wait_ms = slow_ms(20000)), ERR));
}

/* The sentinel that leads it names the next master, and describes the old one. */
TcpLaw(sentinel_masters, of_a_failover_are_used_at_once)
{
    static struct manner manner;

    check(wait_until(has_run_for_a_while, server, 60000));
    hl_client *client = open_told(&manner, master_with(1, another_run, 0));
    expect_ok(
        hl_lock_acquire_with(new_lock(client, "stock"), ACQUIRE(.wait_ms = slow_ms(20000)), ERR));
}
