/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The proxy does each fault exactly: the byte, the direction, the connection that it was told. */

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "support/proxy.h"
#include "support/raw_client.h"
#include "support/redis_probe.h"
#include "support/test.h"

struct proxied {
    struct redis_server *server;
    struct proxy *proxy;
};

static struct proxied proxied_start(void)
{
    struct proxied p = {.server = redis_server_start(NULL)};
    p.proxy = proxy_start_before(p.server);
    return p;
}

static void proxied_stop(struct proxied *p)
{
    proxy_stop(p->proxy);
    redis_server_stop(p->server);
}

Test(support_proxy, passes_and_counts)
{
    struct proxied p = proxied_start();
    redisContext *first = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(first, "PING"), "PONG");
    redisContext *second = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(second, "GET none"), "(array)"); /* nil has no text */
    check_int(proxy_accepted(p.proxy), 2);
    check_int(proxy_open(p.proxy), 2);
    check_int(proxy_bytes(p.proxy, 0, PROXY_UP), strlen("*1\r\n$4\r\nPING\r\n"));
    check_int(proxy_bytes(p.proxy, 0, PROXY_DOWN), strlen("+PONG\r\n"));
    check_int(proxy_bytes(p.proxy, PROXY_EVERY, PROXY_DOWN), strlen("+PONG\r\n$-1\r\n"));
    check_int(proxy_find(p.proxy, "none"), 1);
    check_int(proxy_find(p.proxy, "SUBSCRIBE"), -1);
    redisFree(first);
    redisFree(second);
    proxied_stop(&p);
}

Test(support_proxy, cuts_a_reply_after_each_of_its_bytes)
{
    struct proxied p = proxied_start();
    for (int k = 0; k <= 7; k++) {
        int end = -1;
        proxy_cut_once(p.proxy, PROXY_EVERY, PROXY_DOWN, (uint64_t)k,
                       k % 2 ? PROXY_RST : PROXY_FIN);
        redisContext *link = raw_connect(proxy_port(p.proxy));
        raw_send(link, "PING");
        check_int(raw_read_to_end(link, &end), k);
        check_int(end, k % 2 ? ECONNRESET : 0);
        check_int(proxy_cuts(p.proxy), k + 1);
        redisFree(link);
    }
    redisContext *link = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(link, "PING"), "PONG");
    redisFree(link);
    proxied_stop(&p);
}

Test(support_proxy, cuts_once_and_only_the_connection_that_is_named)
{
    struct proxied p = proxied_start();
    redisContext *other = raw_connect(proxy_port(p.proxy)), *cut = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(other, "PING"), "PONG");
    check_str(raw_ask(cut, "PING"), "PONG");
    int end = 0;
    proxy_cut_once(p.proxy, 1, PROXY_DOWN, 1, PROXY_FIN);
    check_str(raw_ask(other, "PING"), "PONG");
    check_int(proxy_cuts(p.proxy), 0);
    raw_send(cut, "PING");
    check_int(raw_read_to_end(cut, &end), 1);
    check_int(proxy_cuts(p.proxy), 1);
    redisFree(cut);
    redisFree(other);
    proxied_stop(&p);
}

Test(support_proxy, cuts_a_request_of_one_connection_and_leaves_the_others)
{
    struct proxied p = proxied_start();
    int end = 0;
    size_t whole = strlen("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n");
    proxy_cut_after(p.proxy, 1, PROXY_UP, whole - 1, PROXY_FIN);
    proxy_cut_after(p.proxy, 2, PROXY_UP, whole, PROXY_FIN);
    for (int i = 0; i < 3; i++) {
        redisContext *link = raw_connect(proxy_port(p.proxy));
        raw_send(link, "INCR n");
        if (i > 0)
            check_int(raw_read_to_end(link, &end), 0);
        else
            check(raw_is_readable(link, slow_ms(5000)));
        redisFree(link);
    }
    check(redis_wait_int(p.server, 2, 5000, "GET n"));
    check_int(proxy_bytes(p.proxy, 1, PROXY_UP), whole - 1);
    proxied_stop(&p);
}

Test(support_proxy, holds_one_direction_and_delivers_after_the_client_has_gone)
{
    struct proxied p = proxied_start();
    redisContext *link = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(link, "PING"), "PONG");
    proxy_hold(p.proxy, 0, PROXY_DOWN);
    raw_send(link, "INCR n");
    check(redis_wait_int(p.server, 1, 5000, "GET n"));
    check(!raw_is_readable(link, 50));
    proxy_release(p.proxy, PROXY_EVERY, PROXY_DOWN);
    check(raw_is_readable(link, slow_ms(5000)));
    proxy_hold(p.proxy, PROXY_EVERY, PROXY_UP);
    raw_send(link, "INCR n");
    setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    redisFree(link);
    check(redis_wait_int(p.server, 1, 100, "GET n"));
    proxy_pass(p.proxy);
    check_msg(redis_wait_int(p.server, 2, 5000, "GET n"), "the late command must arrive");
    check(redis_wait_clients(p.server, REDIS_NORMAL, 0, 5000));
    proxied_stop(&p);
}

Test(support_proxy, delays_what_passes)
{
    struct proxied p = proxied_start();
    redisContext *link = raw_connect(proxy_port(p.proxy));
    proxy_delay(p.proxy, PROXY_EVERY, PROXY_UP, 30);
    proxy_delay(p.proxy, PROXY_EVERY, PROXY_DOWN, 30);
    int64_t begin_ms = now_ms();
    check_str(raw_ask(link, "PING"), "PONG");
    check(now_ms() - begin_ms >= 59);
    redisFree(link);
    proxied_stop(&p);
}

Test(support_proxy, loses_exactly_the_messages_it_is_told_to)
{
    struct proxied p = proxied_start();
    redisContext *link = raw_connect(proxy_port(p.proxy));
    redisReply *reply = NULL;
    freeReplyObject(redisCommand(link, "SUBSCRIBE red-1 blue"));
    check(redis_wait_subscribers(p.server, "blue", 1, 5000));
    proxy_drop_messages(p.proxy, "red", 1);
    check_int(redis_int(p.server, "PUBLISH red-1 lost"), 1);
    check_int(redis_int(p.server, "PUBLISH blue kept"), 1);
    check_int(redis_int(p.server, "PUBLISH red-1 kept-too"), 1);
    const char *expected[] = {"", "kept", "kept-too"}; /* first the second confirmation */
    for (int i = 0; i < 3; i++) {
        check_int(redisGetReply(link, (void **)&reply), REDIS_OK);
        if (i > 0)
            check_str(reply->element[2]->str, expected[i]);
        freeReplyObject(reply);
    }
    check_int(proxy_dropped(p.proxy), 1);
    redisFree(link);
    proxied_stop(&p);
}

Test(support_proxy, kills_and_refuses)
{
    struct proxied p = proxied_start();
    int end = 0;
    redisContext *link = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(link, "PING"), "PONG");
    proxy_kill_all(p.proxy);
    check_int(raw_read_to_end(link, &end), 0);
    check_int(end, ECONNRESET);
    check_int(proxy_open(p.proxy), 0);
    redisFree(link);
    proxy_refuse(p.proxy, true);
    link = redisConnect("127.0.0.1", proxy_port(p.proxy));
    check(link && link->err == REDIS_ERR_IO);
    redisFree(link);
    proxy_pass(p.proxy);
    link = raw_connect(proxy_port(p.proxy));
    check_str(raw_ask(link, "PING"), "PONG");
    redisFree(link);
    proxied_stop(&p);
}

Test(support_proxy, listens_on_a_unix_socket_too)
{
    char path[128];
    struct redis_server *server = redis_server_start(NULL);
    snprintf(path, sizeof path, "%s/proxy", redis_server_dir(server));
    struct proxy *proxy = proxy_start(
        &(struct proxy_options){.server_path = redis_server_socket(server), .listen_path = path});
    check(strncmp(proxy_url(proxy), "unix:///", 8) == 0);
    redisContext *link = redisConnectUnix(path);
    check_str(raw_ask(link, "PING"), "PONG");
    redisFree(link);
    proxy_refuse(proxy, true);
    proxy_refuse(proxy, false);
    link = redisConnectUnix(path);
    check_str(raw_ask(link, "PING"), "PONG");
    redisFree(link);
    proxy_stop(proxy);
    redis_server_stop(server);
}
