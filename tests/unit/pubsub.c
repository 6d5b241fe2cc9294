/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Subscriptions without a server: whose message it is, and whose slot has moved. */
#include "redis/pubsub.h"
#include "support/fatal.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define UUID "0d1c2b3a-4f5e-6789-abcd-ef0123456789"

enum { SLOT = 3432 }; /* of {n} */

static struct hli_pubsub pubsub;
static struct hli_channel channel, follower, mailbox;
static char log_text[128]; /* what was called */

static void note(const char *what, const struct hli_channel *which)
{
    snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s%s %s",
             log_text[0] ? ", " : "",
             which == &channel    ? "channel"
             : which == &follower ? "follower"
                                  : "mailbox",
             what);
}

static void on_message(struct hli_channel *which, const struct hli_message *message)
{
    char what[64];
    snprintf(what, sizeof what, "%zu %.*s", message->which, (int)message->text.length,
             (const char *)message->text.data);
    note(what, which);
}

static void on_moved(struct hli_channel *which)
{
    note("moved", which);
}

static void on_gone(struct hli_channel *which)
{
    note("gone", which);
}

static void begin(void)
{
    static struct hli_conn conn; /* not open */
    hli_pubsub_init(&pubsub, &conn);
    pubsub.is_up = pubsub.is_sharded = true;
    mailbox = (struct hli_channel){.message = on_message};
    mailbox.names[0].bytes = hli_bytes_of("hirelock:" UUID);
    pubsub.mailbox = &mailbox;
    channel = follower =
        (struct hli_channel){.message = on_message, .moved = on_moved, .gone = on_gone};
    channel.slot = follower.slot = SLOT;
    channel.names[0].bytes = follower.names[0].bytes = hli_bytes_of("java:{n}");
    channel.names[1].bytes = hli_bytes_of("hirelock:{n}");
    channel.names[2].bytes = hli_bytes_of("hirelock:{n}:" UUID);
    must(hli_channel_want(&pubsub, &channel) == 0 && hli_channel_want(&pubsub, &follower) == 0);
    channel.state = HLI_CHANNEL_ON;
}

static struct hli_reply *reply_read(const char *bytes)
{
    struct hli_parser *parser = hli_parser_new(NULL);
    struct hli_reply *reply = NULL;
    must(parser && hli_parser_feed(parser, bytes, strlen(bytes)) == 0 &&
         hli_parser_next(parser, &reply) == 0);
    hli_parser_free(parser);
    return reply;
}

/* {kind, name, text}, as the server writes it. */
static struct hli_reply *reply_of(const char *kind, const char *name, const char *text)
{
    static char bytes[512];
    snprintf(bytes, sizeof bytes, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(kind),
             kind, strlen(name), name, strlen(text), text);
    return reply_read(bytes);
}

static void hear(const char *kind, const char *name, const char *text)
{
    struct hli_reply *reply = reply_of(kind, name, text);
    log_text[0] = '\0';
    if (hli_reply_is_message(reply))
        hli_pubsub_message(&pubsub, reply);
    else if (hli_pubsub_is_moved(&pubsub, reply, NULL))
        hli_pubsub_moved(&pubsub, reply);
    hli_reply_free(reply);
}

Test(pubsub, tells_sharded_messages_as_others, .init = begin)
{
    hear("message", "java:{n}", "0");
    check_str(log_text, "channel 0 0, follower 0 0");
    hear("smessage", "java:{n}", "0");
    check_str(log_text, "channel 0 0, follower 0 0");
    hear("smessage", "hirelock:{n}", "y");
    check_str(log_text, "channel 1 y, follower 1 y");
    hear("smessage", "hirelock:{m}", "y");
    check_str(log_text, "");
}

Test(pubsub, knows_all_mailboxes_of_its_client, .init = begin)
{
    hear("message", "hirelock:" UUID, "w n");
    check_str(log_text, "mailbox 0 w n");
    hear("smessage", "hirelock:{n}:" UUID, "w n");
    check_str(log_text, "mailbox 0 w n");
    hear("smessage", "hirelock:a{n}:" UUID, "w a{n}");
    check_str(log_text, "mailbox 0 w a{n}");
    hear("smessage", "hirelock:{n}:1" UUID, "w n");
    check_str(log_text, "");
    hear("smessage", "hirelock" UUID, "w n");
    check_str(log_text, "");
}

Test(pubsub, ends_a_subscription_whose_slot_has_moved, .init = begin)
{
    hear("sunsubscribe", "hirelock:{n}", "0");
    check_str(log_text, "follower moved, channel moved");
    hear("sunsubscribe", "java:{n}", "0"); /* the others of it are told, too */
    check_str(log_text, "");
    check(!channel.pubsub && !follower.pubsub);
    must(hli_channel_want(&pubsub, &channel) == 0); /* at another node, as a rule */
    hli_channel_drop(&channel);
    check_str(log_text, "channel gone");
}

/* Its slot may move, too, so what the server says of that stands before the answer. */
Test(pubsub, takes_the_answer_to_its_own_command_for_that, .init = begin)
{
    struct hli_reply *reply = reply_of("sunsubscribe", "hirelock:{n}", "0");
    struct hli_reply *others = reply_of("sunsubscribe", "hirelock:{m}", "0");
    struct hli_op ping = {.script = -1};
    hli_pubsub_interrupt(&pubsub, &ping); /* prepares `leave` */
    check(!hli_pubsub_is_moved(&pubsub, reply, &channel.leave));
    check(hli_pubsub_is_moved(&pubsub, reply, &channel.op)); /* SSUBSCRIBE */
    channel.state = HLI_CHANNEL_LEAVING;
    check(!hli_pubsub_is_moved(&pubsub, reply, &channel.op));
    check(hli_pubsub_is_moved(&pubsub, others, &channel.op));
    check(hli_pubsub_is_moved(&pubsub, reply, &ping));
    check(hli_pubsub_is_moved(&pubsub, reply, NULL));
    hli_reply_free(reply);
    hli_reply_free(others);
}

static bool is_answer(const char *bytes, const struct hli_op *oldest)
{
    struct hli_reply *reply = reply_read(bytes);
    bool is_moved = hli_pubsub_is_moved(&pubsub, reply, oldest);
    if (is_moved)
        hli_pubsub_moved(&pubsub, reply);
    hli_reply_free(reply);
    return !is_moved;
}

Test(pubsub, takes_moved_for_an_answer_of_the_slot_that_it_names, .init = begin)
{
    const struct hli_op ping = {.script = -1};
    check(is_answer("-MOVED 3432 127.0.0.1:6381\r\n", &channel.op));
    check(!is_answer("-MOVED 3433 127.0.0.1:6381\r\n", &channel.op));
    check(!is_answer("-MOVED 343 127.0.0.1:6381\r\n", &channel.op));
    check(!is_answer("-MOVED 3432 127.0.0.1:6381\r\n", &ping));
    check(!is_answer("-MOVED 3432 127.0.0.1:6381\r\n", NULL));
    check(is_answer("-CLUSTERDOWN Hash slot not served\r\n", &ping));
    check(is_answer("-MOVED\r\n", NULL));
    check_int(channel.state, HLI_CHANNEL_ON);
    pubsub.is_sharded = false;
    check(is_answer("-MOVED 3432 127.0.0.1:6381\r\n", NULL));
}
