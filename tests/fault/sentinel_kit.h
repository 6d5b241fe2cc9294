/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Fake sentinels, which say what a test wants of the master of "mymaster". */
#ifndef HL_TEST_SENTINEL_KIT_H
#define HL_TEST_SENTINEL_KIT_H

#include "support/events.h"
#include "support/fake_server.h"
#include "support/kit.h"

#include <stdio.h>
#include <string.h>

/* What a fake sentinel answers; "" is silence. The test may change the first three while the
 * sentinel runs. */
struct manner {
    _Atomic(const char *) address, epoch, peers;
    enum fake_then then;
    int64_t subscribes_after_ms;
    const char *service; /* NULL: "mymaster" */
};

static const char no_peers[] = "*0\r\n", epoch_1[] = "*2\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n",
                  refused[] = "-NOPERM no\r\n";

static inline bool sentinel_answer(const struct resp_command *command, struct fake_reply *reply,
                                   void *arg)
{
    struct manner *manner = arg;
    const char *service = manner->service ? manner->service : "mymaster";
    if (resp_command_begins(command, "SUBSCRIBE"))
        reply->delay_ms = manner->subscribes_after_ms;
    if (resp_command_begins(command, "SENTINEL") && !resp_command_arg_is(command, 2, service))
        fake_reply_text(reply, "*-1\r\n");
    else if (resp_command_begins(command, "SENTINEL GET-MASTER-ADDR-BY-NAME"))
        fake_reply_text(reply, manner->address);
    else if (resp_command_begins(command, "SENTINEL MASTER"))
        fake_reply_text(reply, manner->epoch);
    else if (resp_command_begins(command, "SENTINEL SENTINELS"))
        fake_reply_text(reply, manner->peers);
    else
        return false;
    reply->then = manner->then;
    return true;
}

/* Borrowed until the 32nd next call, as the next two. */
static inline char *sentinel_text(void)
{
    static char texts[32][256];
    static unsigned turn;
    return texts[turn++ % 32];
}

/* The answer that names 127.0.0.1:port. */
static inline const char *address_of(int port)
{
    char *text = sentinel_text(), digits[16];
    int length = snprintf(digits, sizeof digits, "%d", port);
    snprintf(text, 256, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", length, digits);
    return text;
}

/* The answer that tells of another sentinel. */
static inline const char *peer_of(int port)
{
    char *text = sentinel_text(), digits[16];
    int length = snprintf(digits, sizeof digits, "%d", port);
    snprintf(text, 256, "*1\r\n*4\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$%d\r\n%s\r\n",
             length, digits);
    return text;
}

static inline const char *epoch_of(int number)
{
    char *text = sentinel_text();
    snprintf(text, 256, "*2\r\n$12\r\nconfig-epoch\r\n$1\r\n%d\r\n", number);
    return text;
}

static inline struct fake_server *new_fake(fake_handler *handler, void *arg)
{
    return stop_at_end(fake_server_start(handler, arg), (void (*)(void *))fake_server_stop);
}

static inline struct fake_server *new_sentinel(struct manner *manner)
{
    return new_fake(sentinel_answer, manner);
}

/* One that names `server`. */
static inline struct fake_server *new_honest_sentinel(void)
{
    static struct manner honest;
    static char address[64];
    snprintf(address, sizeof address, "%s", address_of(redis_server_port(server)));
    honest.address = address;
    honest.epoch = epoch_1;
    honest.peers = no_peers;
    return new_sentinel(&honest);
}

/* second may be NULL. Borrowed until the next call. */
static inline const char *url_of(struct fake_server *first, struct fake_server *second)
{
    static char url[128];
    int length =
        snprintf(url, sizeof url, "redis-sentinel://127.0.0.1:%d", fake_server_port(first));

    if (second)
        length += snprintf(url + length, sizeof url - (size_t)length, ",127.0.0.1:%d",
                           fake_server_port(second));
    snprintf(url + length, sizeof url - (size_t)length, "/mymaster");
    return url;
}

static inline void expect_refused(const char *url, const hl_client_options *options, int code,
                                  const char *says)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open(url, options, &client, &err), code);
    check_msg(strstr(err.text, says) != NULL, "%s, not %s", err.text, says);
}

/* A sentinel has got so many subscriptions: it is watched. */
static inline void expect_watched(struct fake_server *sentinel, int times)
{
    check(fake_server_wait_count(sentinel, "SUBSCRIBE +switch-master", times, 20000));
}

#endif
