/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fake server greets like Redis, and otherwise says what the test wrote for it. */

#include <errno.h>

#include "support/fake_server.h"
#include "support/raw_client.h"
#include "support/sha1.h"
#include "support/test.h"

static bool answer_evalsha(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    if (!resp_command_begins(command, "EVALSHA"))
        return false;
    fake_reply_format(reply, ":%d\r\n", ++*(int *)arg);
    return true;
}

Test(support_fake_server, greets_like_redis_and_lets_a_handler_answer)
{
    int calls = 40;
    char digest[41];
    struct fake_server *server = fake_server_start(answer_evalsha, &calls);
    redisContext *link = raw_connect(fake_server_port(server));
    check_str(raw_ask(link, "AUTH user pw"), "OK");
    check_str(raw_ask(link, "SELECT 3"), "OK");
    check_str(raw_ask(link, "CLIENT SETNAME x"), "OK");
    check_str(raw_ask(link, "PING"), "PONG");
    sha1_hex("abc", 3, digest);
    check_str(digest, "a9993e364706816aba3e25717850c26c9cd0d89d");
    check_str(raw_ask(link, "SCRIPT LOAD abc"), digest);
    check_str(raw_ask(link, "EVALSHA abc 0"), "41");
    check_str(raw_ask(link, "evalsha abc 0"), "42");
    check_int(fake_server_count(server, "EVALSHA"), 2);
    check_int(fake_server_count(server, "CLIENT SETNAME"), 1);
    check_str(raw_ask(link, "NOSUCH"), "ERR unknown command");
    redisFree(link);
    fake_server_stop(server);
}

Test(support_fake_server, delivers_messages_to_subscribers)
{
    struct fake_server *server = fake_server_start(NULL, NULL);
    redisContext *link = raw_connect(fake_server_port(server));
    redisReply *reply = redisCommand(link, "SUBSCRIBE c");
    check(reply && reply->elements == 3);
    check_int(reply->element[2]->integer, 1);
    freeReplyObject(reply);
    fake_server_publish(server, "c", "hello");
    check_int(redisGetReply(link, (void **)&reply), REDIS_OK);
    check_str(reply->element[2]->str, "hello");
    freeReplyObject(reply);
    redisFree(link);
    fake_server_stop(server);
}

Test(support_fake_server, plays_junk_surplus_stall_and_close)
{
    static const struct fake_step play[] = {
        {.expect = "", .answer = "-ERR max number of clients reached\r\n"},
        {.expect = "PING", .answer = "+PONG\r\n+EXTRA\r\n"},
        {.expect = "GET", .answer = "HTTP/1.1 400\r\n", .then = FAKE_CLOSE},
        {.expect = "GET", .answer = "$5\r\nab", .then = FAKE_RESET},
        {.expect = "EVALSHA", .answer = "+LATE\r\n", .delay_ms = 30},
        {.expect = "EVALSHA", .then = FAKE_STALL},
    };
    int end = 0;
    struct fake_server *server = fake_server_start(NULL, NULL);
    fake_server_play(server, play, sizeof play / sizeof play[0]);
    redisContext *link = raw_connect(fake_server_port(server));
    check_str(raw_ask(link, "SELECT 1"), "ERR max number of clients reached");
    check_str(raw_ask(link, "SELECT 1"), "OK");
    check_str(raw_ask(link, "PING"), "OK");
    check_str(raw_ask(link, "SELECT 1"), "PONG");
    check_str(raw_ask(link, "SELECT 1"), "EXTRA");
    redisFree(link);
    link = raw_connect(fake_server_port(server));
    check_str(raw_ask(link, "GET a"), "(none)");
    check_int(link->err, REDIS_ERR_PROTOCOL);
    redisFree(link);
    link = raw_connect(fake_server_port(server));
    raw_send(link, "GET a");
    check_int(raw_read_to_end(link, &end), 6);
    check_int(end, ECONNRESET);
    redisFree(link);
    link = raw_connect(fake_server_port(server));
    int64_t begin_ms = now_ms();
    check_str(raw_ask(link, "EVALSHA x 0"), "LATE");
    check(now_ms() - begin_ms >= 29);
    check_str(raw_ask(link, "EVALSHA x 0"), "(array)"); /* answered {1}, then it stalls */
    raw_send(link, "PING");
    check(!raw_is_readable(link, 50));
    check(fake_server_wait_play(server, 0));
    redisFree(link);
    fake_server_stop(server);
}
