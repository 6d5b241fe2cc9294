/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Sentinels that were all set up anew, with another master, so that none has the id that it had: a
 * fake one, since the client takes a minute to believe it. */

#include "sentinel_kit.h"

#include "base/clock.h"
#include "support/recorder.h"

static struct manner manner;
static _Atomic int id = 1;
static struct recorder lines = RECORDER_INIT;

static bool answer(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    char text[64];

    if (!resp_command_begins(command, "SENTINEL MYID"))
        return sentinel_answer(command, reply, arg);
    snprintf(text, sizeof text, "$40\r\n%040d\r\n", id);
    fake_reply_text(reply, text);
    return true;
}

static bool has_changed(void *arg)
{
    (void)arg;
    return recorder_says(&lines, "names another master of 'mymaster'");
}

TcpLaw(sentinel_reset, of_all_sentinels_is_believed_after_a_minute)
{
    struct redis_server *other =
        stop_at_end(redis_server_start(&(struct redis_options){.tcp = true}),
                    (void (*)(void *))redis_server_stop);

    manner.address = address_of(redis_server_port(server));
    manner.epoch = epoch_of(5);
    manner.peers = no_peers;
    struct fake_server *sentinel = new_fake(answer, &manner);
    hl_client *client = open_client_at(url_of(sentinel, NULL),
                                       CLIENT(.on_log = record_log, .log_level = HL_LOG_WARN,
                                              .arg = &lines, .outage_timeout_ms = slow_ms(200000)));
    id = 2;
    manner.address = address_of(redis_server_port(other));
    manner.epoch = epoch_1;
    hli_ns began = hli_now();
    redis_server_kill(server);
    check(wait_until(has_changed, NULL, 200000));
    check(hli_now() - began >= HLI_MS(60000));
    expect_ok(hl_lock_acquire(new_lock(client, "stock"), ERR));
    check_int(redis_int(other, "EXISTS stock"), 1);
}
