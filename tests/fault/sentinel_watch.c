/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A sentinel is watched: what it tells later, and what becomes of the client when it tells too
 * much, too late, or no more. The sentinels are fake, the first master is a real server. */
#include "sentinel_kit.h"

#include "support/recorder.h"

static struct manner first, second;
static struct events events;

/* Both name `server`, in the first epoch. */
static void watch_up(void)
{
    server = redis_server_start(&(struct redis_options){.tcp = true});
    first.address = second.address = address_of(redis_server_port(server));
    first.epoch = second.epoch = epoch_1;
    first.peers = second.peers = no_peers;
}

#define WatchLaw(...) Test(sentinel_watch, __VA_ARGS__, .init = watch_up, .fini = server_down)

static const hl_client_options *counting(void)
{
    static hl_client_options used;

    used = *CLIENT(.outage_timeout_ms = slow_ms(30000), .on_event = count_event, .arg = &events);
    return &used;
}

static void expect_connected(int times)
{
    check(events_wait(&events, HL_EVENT_CONNECTED, times, 30000));
}

static void cut_link(void)
{
    redis_do(server, "CLIENT KILL TYPE normal");
}

/* The link is lost before the answer to SUBSCRIBE has come: the client must not send the same
 * request twice at a time. */
WatchLaw(begins_behind_the_last_answer)
{
    first.subscribes_after_ms = 300;
    struct fake_server *sentinel = new_sentinel(&first);
    hl_client *client = open_client_at(url_of(sentinel, NULL), counting());

    for (int i = 1; i <= 3; i++) {
        cut_link();
        expect_connected(i);
    }
    expect_ok(hl_client_ping(client, -1, ERR));
}

/* Each has its time, though a round asks all of them within one connect timeout. */
WatchLaw(of_sentinels_that_answer_slowly_begins_in_time)
{
    char url[128];

    first.subscribes_after_ms = slow_ms(800);
    snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster",
             fake_server_port(new_sentinel(&first)), fake_server_port(new_sentinel(&first)),
             fake_server_port(new_sentinel(&first)));
    expect_ok(
        hl_client_ping(open_client_at(url, CLIENT(.connect_timeout_ms = slow_ms(2000))), -1, ERR));
}

WatchLaw(of_a_storm_of_messages_asks_ten_times_a_second)
{
    struct fake_server *sentinel = new_sentinel(&first);
    hl_client *client = open_client_at(url_of(sentinel, NULL), counting());
    int64_t began_ms = now_ns() / 1000000;

    expect_watched(sentinel, 1);
    while (now_ns() / 1000000 - began_ms < 600) {
        fake_server_publish(sentinel, "+switch-master", "mymaster 127.0.0.1 1 127.0.0.1 2");
        expect_ok(hl_client_ping(client, -1, ERR));
    }
    expect_watched(sentinel, 3);
    int asked = fake_server_count(sentinel, "SENTINEL MASTER");
    int64_t lasted_ms = now_ns() / 1000000 - began_ms;
    check_msg(asked <= 2 + lasted_ms / 100, "asked %d times in %d ms", asked, (int)lasted_ms);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
}

/* The sentinel that leads a failover names the next master some time before it tells of the switch.
 * Without a message the client asks every ten seconds: three times take thirty. */
WatchLaw(hears_of_a_promotion)
{
    struct fake_server *sentinel = new_sentinel(&first);

    open_client_at(url_of(sentinel, NULL), counting());
    expect_watched(sentinel, 1);
    int64_t began_ms = now_ms();
    fake_server_publish(sentinel, "+promoted-slave", "slave 127.0.0.1:2 127.0.0.1 2 @ other x 1");
    fake_server_publish(sentinel, "+promoted-slave", "slave 127.0.0.1:2 127.0.0.1 2 @ mymaster2 x");
    for (int i = 2; i <= 4; i++) {
        fake_server_publish(sentinel, "+promoted-slave", "slave x 127.0.0.1 2 @ mymaster x 1");
        check(fake_server_wait_count(sentinel, "SUBSCRIBE +switch-master", i, 5000));
    }
    check(now_ms() - began_ms < 25000);
    check_int(fake_server_count(sentinel, "SENTINEL MASTER"), 4);
}

/* The pause between two attempts is ten minutes here, and without the message the sentinels are
 * asked after ten seconds. False: the machine was too busy to tell which of both it was. */
static bool message_ends_the_pause(void)
{
    static struct recorder story;
    hl_client *client = NULL;
    const char *master = first.address;
    int64_t began_ms = now_ms();

    story = (struct recorder)RECORDER_INIT;
    first.address = second.address = address_of(1);
    first.epoch = second.epoch = refused;
    struct fake_server *other = new_sentinel(&first), *watched = new_sentinel(&second);
    expect_ok(hl_client_open(url_of(other, watched),
                             CLIENT(.flags = HL_CLIENT_LAZY, .outage_timeout_ms = -1,
                                    .backoff_min_ms = 600000, .backoff_max_ms = 600000,
                                    .on_log = record_log, .log_level = HL_LOG_INFO, .arg = &story),
                             &client, ERR));
    expect_watched(other, 1);
    expect_watched(watched, 1);
    check(recorder_wait_says(&story, "no connection"));
    second.address = master;
    fake_server_publish(watched, "+switch-master", "mymaster x");
    expect_ok(hl_client_ping(client, slow_ms(20000), ERR));
    bool is_sure = now_ms() - began_ms < 10000;
    check(!recorder_says(&story, "another server is the master now"));
    if (is_sure)
        check_int(fake_server_count(other, "SENTINEL MASTER"), 1); /* the other one names it */
    close_client(client);
    first.address = master;
    return is_sure;
}

WatchLaw(ends_the_pause_between_two_attempts)
{
    struct deadline deadline = deadline_of_wait(20000);

    while (!message_ends_the_pause())
        check(!deadline_is_over(deadline));
}

WatchLaw(of_one_that_hangs_up_begins_anew_at_once)
{
    static struct recorder story = RECORDER_INIT;
    struct fake_server *sentinel = new_sentinel(&first);
    hl_client *client =
        open_client_at(url_of(sentinel, NULL), CLIENT(.on_log = record_log, .arg = &story));

    expect_watched(sentinel, 1);
    fake_server_close_all(sentinel, FAKE_RESET);
    expect_watched(sentinel, 2);
    expect_ok(hl_client_ping(client, -1, ERR));
    check(!recorder_says(&story, "unnoticed"));
}

/* The link stands all the time, so nothing else would tell of it. */
WatchLaw(that_is_lost_and_regained_is_told_once_each)
{
    static struct recorder story = RECORDER_INIT;
    struct fake_server *sentinel = new_sentinel(&first);
    const char *address = first.address;
    hl_client *client =
        open_client_at(url_of(sentinel, NULL), CLIENT(.on_log = record_log, .arg = &story));

    expect_watched(sentinel, 1);
    first.address = refused;
    fake_server_publish(sentinel, "+switch-master", "mymaster x");
    check(recorder_wait_says(&story, "so a failover may go unnoticed"));
    check(fake_server_wait_count(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME", 3, 30000));
    first.address = address;
    check(recorder_wait_says(&story, "of 'mymaster' answers again"));
    expect_ok(hl_client_ping(client, -1, ERR));
    check_int(recorder_count(&story), 2);
}

WatchLaw(of_one_that_knows_no_others_keeps_those_that_are_known)
{
    struct fake_server *new_one = new_sentinel(&second);
    struct fake_server *sentinel = fake_server_start(sentinel_answer, &first);

    first.peers = peer_of(fake_server_port(new_one));
    open_client_at(url_of(sentinel, NULL), counting());
    expect_watched(sentinel, 1);
    first.peers = no_peers;
    fake_server_publish(sentinel, "+switch-master", "mymaster x");
    expect_watched(sentinel, 2);
    fake_server_stop(sentinel);
    expect_watched(new_one, 1);
}

/* It names no master of today, and sentinels that there are not. */
static void expect_passed_over(bool hides_epoch)
{
    struct fake_server *new_one = new_honest_sentinel(), *stale = new_sentinel(&second);
    struct fake_server *sentinel = fake_server_start(sentinel_answer, &first);

    first.epoch = epoch_of(5);
    first.peers = peer_of(fake_server_port(new_one));
    second.address = address_of(1);
    second.peers = peer_of(2);
    open_client_at(url_of(sentinel, stale), counting());
    expect_watched(sentinel, 1);
    if (hides_epoch) {
        first.epoch = refused;
        fake_server_publish(sentinel, "+switch-master", "mymaster x");
        expect_watched(sentinel, 2);
    }
    fake_server_stop(sentinel);
    check(fake_server_wait_count(new_one, "SENTINEL MASTER", 1, 20000));
    check_int(fake_server_count(stale, "SENTINEL MASTER"), 1);
    check_int(events_told(&events, HL_EVENT_DISCONNECTED), 0);
}

WatchLaw(passes_over_a_stale_one_and_its_list)
{
    expect_passed_over(false);
}

/* By an ACL it may not tell of the epoch. */
WatchLaw(by_one_that_does_not_tell_the_epoch_lets_no_stale_one_be_believed)
{
    expect_passed_over(true);
}

/* Both have an older epoch than the client knows. */
WatchLaw(believes_the_newest_of_the_old_when_there_is_no_master)
{
    char who[64];
    struct fake_server *master = new_fake(NULL, NULL);
    struct fake_server *newer = new_sentinel(&first), *older = new_sentinel(&second);

    first.epoch = second.epoch = epoch_of(5);
    hl_client *client = open_client_at(url_of(newer, older), counting());
    first.address = address_of(fake_server_port(master));
    first.epoch = epoch_of(3);
    second.epoch = epoch_of(2);
    cut_link();
    expect_connected(1);
    check_int(events_told(&events, HL_EVENT_MASTER_CHANGED), 1);
    snprintf(who, sizeof who, "sentinel 127.0.0.1:%d names it", fake_server_port(newer));
    check_str(events.reason[HL_EVENT_MASTER_CHANGED], who);
    expect_ok(hl_client_ping(client, -1, ERR));
}

/* All sentinels were set up anew, and so begin with epoch 0, while the link stands. */
WatchLaw(goes_on_with_sentinels_that_were_set_up_anew)
{
    struct fake_server *master = new_fake(NULL, NULL);
    struct fake_server *one = new_sentinel(&first), *two = new_sentinel(&second);

    first.epoch = second.epoch = epoch_of(5);
    open_client_at(url_of(one, two), counting());
    expect_watched(one, 1);
    first.epoch = second.epoch = epoch_of(0);
    fake_server_publish(one, "+switch-master", "mymaster x");
    expect_watched(two, 1);
    expect_watched(one, 3);
    first.epoch = second.epoch = epoch_1;
    first.address = second.address = address_of(fake_server_port(master));
    fake_server_publish(one, "+switch-master", "mymaster x");
    fake_server_publish(two, "+switch-master", "mymaster x");
    check(events_wait(&events, HL_EVENT_MASTER_CHANGED, 1, 20000));
}

WatchLaw(asks_for_the_name_as_it_is_in_the_url)
{
    char url[160];
    struct fake_server *sentinel = new_sentinel(&first);

    first.service = "m\xc3\xa4%s/x";
    snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%d/m%%C3%%A4%%25s%%2Fx?db=0",
             fake_server_port(sentinel));
    open_client_at(url, counting());
    expect_watched(sentinel, 1);
    fake_server_publish(sentinel, "+switch-master", "m\xc3\xa4%s/x 127.0.0.1 1 127.0.0.1 2");
    expect_watched(sentinel, 2);
}

WatchLaw(follows_host_names_and_ipv6)
{
    static struct recorder story = RECORDER_INIT;
    char text[64];
    int length = snprintf(text, sizeof text, "%d", redis_server_port(server));
    struct fake_server *sentinel = new_sentinel(&first);

    first.address = "*2\r\n$3\r\n::1\r\n$1\r\n1\r\n";
    hl_client *client = NULL;
    expect_ok(hl_client_open(url_of(sentinel, NULL),
                             CLIENT(.flags = HL_CLIENT_LAZY, .outage_timeout_ms = -1,
                                    .on_log = record_log, .arg = &story),
                             &client, ERR));
    check(recorder_wait_says(&story, "connect [::1]:1: "));
    char by_name[128];
    snprintf(by_name, sizeof by_name, "*2\r\n$9\r\nlocalhost\r\n$%d\r\n%s\r\n", length, text);
    first.address = by_name;
    expect_ok(hl_client_ping(client, -1, ERR));
    snprintf(text, sizeof text, "localhost:%d", redis_server_port(server));
    check(recorder_wait_says(&story, text));
    close_client(client);
    fake_server_close_all(sentinel, FAKE_RESET);
}

static bool hang_up(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    (void)command, (void)arg;
    reply->then = FAKE_CLOSE;
    return true;
}

WatchLaw(is_told_of_tls_by_its_words)
{
    char url[160];
    const hl_client_options *quick = CLIENT(.connect_timeout_ms = 500);

    expect_refused(url_of(new_fake(hang_up, NULL), NULL), NULL, HL_ECONN,
                   "(if it speaks TLS: rediss-sentinel://)");
    first.address = address_of(fake_server_port(new_fake(hang_up, NULL)));
    expect_refused(url_of(new_sentinel(&first), NULL), NULL, HL_ECONN,
                   "(if it speaks TLS: rediss-sentinel://)");
    snprintf(url, sizeof url, "rediss-sentinel://127.0.0.1:%d/mymaster", redis_server_port(server));
    expect_refused(url, quick, HL_ECONN, "no answer to the TLS handshake");
}

WatchLaw(is_not_awaited_longer_than_the_outage)
{
    first.address = "";
    expect_refused(url_of(new_sentinel(&first), NULL),
                   CLIENT(.connect_timeout_ms = 600000, .outage_timeout_ms = 300,
                          .request_timeout_ms = 600000),
                   HL_ECONN, "no answer from the sentinels");
}
