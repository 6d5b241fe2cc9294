/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Commands of the caller's own whose connection is lost: in doubt, and repeated only if they read.
 */

#include "support/command.h"
#include "support/proxy.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static hl_client *client_behind(struct proxy *proxy)
{
    return open_client_at(proxy_url(proxy),
                          CLIENT(.outage_timeout_ms = slow_ms(60000), .connections = 1));
}

/* The third, behind those of the locks. */
enum { COMMANDS_LINK = 2 };

/* The answer's first byte cuts the connection that the client sends commands by. */
static struct proxy *cut_before_the_answer(hl_client **ret_client)
{
    struct proxy *proxy = new_proxy();

    *ret_client = client_behind(proxy);
    reply_of(*ret_client, COMMAND(WORDS("PING")));
    proxy_cut_once(proxy, COMMANDS_LINK, PROXY_DOWN, 1, PROXY_RST);
    return proxy;
}

SingleLaw(command, that_changes_is_in_doubt_when_its_connection_is_cut)
{
    hl_client *client = NULL;
    struct proxy *proxy = cut_before_the_answer(&client);
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_command(client, COMMAND(WORDS("INCR", "n"), .key = "n"), &reply, &err),
                   HL_EINDOUBT);
    check_has(err.text, "command 'INCR'");
    check(reply == NULL);
    check_int(proxy_cuts(proxy), 1);
    check(redis_wait_int(server, 1, 5000, "GET n"));
    reply_of(client, COMMAND(WORDS("PING"))); /* behind which no second copy was sent */
    check_int(redis_int(server, "GET n"), 1);
}

SingleLaw(command, that_reads_is_sent_again_when_its_connection_is_cut)
{
    hl_client *client = NULL;
    struct proxy *proxy = cut_before_the_answer(&client);
    hl_reply *reply = NULL;

    redis_do(server, "SET n 5");
    expect_ok(hl_client_command(
        client, COMMAND(WORDS("GET", "n"), .key = "n", .flags = HL_COMMAND_READS), &reply, ERR));
    check_str(reply->text, "5");
    check_int(proxy_cuts(proxy), 1);
    hl_reply_free(reply);
}

static bool is_cut_off(void *client)
{
    hl_stats stats = HL_STATS_INIT;

    expect_ok(hl_client_stats(client, &stats));
    return stats.nodes_now == 0;
}

SingleLaw(command, that_cannot_be_sent_waits_for_the_server)
{
    struct proxy *proxy = new_proxy();
    hl_client *client = client_behind(proxy);
    hl_reply *reply = NULL;

    expect_ok(hl_client_ping(client, -1, ERR));
    proxy_refuse(proxy, true);
    proxy_kill_all(proxy);
    check(wait_until(is_cut_off, client, 5000)); /* the client knows it, too */
    expect_outcome(hl_client_command(client,
                                     COMMAND(WORDS("INCR", "n"), .key = "n", .timeout_ms = 50),
                                     &reply, ERR),
                   HL_ECONN);
    proxy_pass(proxy);
    expect_ok(hl_client_command(client, COMMAND(WORDS("INCR", "n"), .key = "n"), &reply, ERR));
    check_int(reply->integer, 1);
    hl_reply_free(reply);
}

SingleLaw(command, that_is_not_answered_in_time_is_in_doubt)
{
    struct proxy *proxy = new_proxy();
    hl_client *client = client_behind(proxy);
    hl_reply *reply = NULL;

    reply_of(client, COMMAND(WORDS("PING")));
    proxy_hold(proxy, PROXY_EVERY, PROXY_DOWN);
    expect_outcome(hl_client_command(client,
                                     COMMAND(WORDS("INCR", "n"), .key = "n", .timeout_ms = 50),
                                     &reply, ERR),
                   HL_EINDOUBT);
    expect_outcome(hl_client_command(client,
                                     COMMAND(WORDS("GET", "n"), .key = "n", .timeout_ms = 50,
                                             .flags = HL_COMMAND_READS),
                                     &reply, ERR),
                   HL_ETIMEDOUT);
    check(reply == NULL);
    proxy_pass(proxy);
}

static bool has_no_client(void *arg)
{
    return proxy_open(arg) == 0;
}

/* The server sees the end of its connection with that of the parent's, whatever the child does. */
SingleLaw(command, leaves_no_connection_open_in_a_forked_child)
{
    struct proxy *proxy = new_proxy();
    hl_client *client = client_behind(proxy);
    int ends[2], status = -1;
    char byte;

    reply_of(client, COMMAND(WORDS("PING")));
    check_int(proxy_open(proxy), COMMANDS_LINK + 1);
    check_int(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        hl_reply *reply = NULL;
        close(ends[1]);
        int code = hl_client_command(client, COMMAND(WORDS("PING")), &reply, NULL);
        _exit(code == HL_EFORKED && hl_client_close(client) == HL_EFORKED &&
                      read(ends[0], &byte, 1) == 0
                  ? 0
                  : 1);
    }
    close(ends[0]);
    close_client(client);
    check(wait_until(has_no_client, proxy, 20000));
    close(ends[1]);
    check_int(waitpid(child, &status, 0), child);
    check_int(status, 0);
}

static void refusing_up(void)
{
    server_up_with(&(struct redis_options){.password = "secret"});
}

/* Its own connection waits for that of the locks, and has its problems until then. */
Test(command, of_a_client_that_is_denied_is_denied_at_once, .init = refusing_up,
     .fini = server_down)
{
    hl_client *client = open_client(
        CLIENT(.password = "wrong", .flags = HL_CLIENT_LAZY, .outage_timeout_ms = slow_ms(600000)));
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_command(client, COMMAND(WORDS("PING")), &reply, &err), HL_EDENIED);
    check_has(err.text, "the server refused the user or password");
    expect_outcome(hl_client_command(client, COMMAND(WORDS("PING")), &reply, &err), HL_EDENIED);
}

static void busy_up(void)
{
    server_up_with(&(struct redis_options){.config = "lua-time-limit 20"});
}

static bool is_busy(void *arg)
{
    (void)arg;
    return strncmp(redis_str(server, "DBSIZE"), "BUSY", 4) == 0;
}

static void answered_with(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    (void)reply, (void)err;
    atomic_store((atomic_int *)arg, code);
}

static bool is_answered(void *code)
{
    return atomic_load((atomic_int *)code) != 1;
}

/* A server in the hands of an endless script refuses the command, and all else on its connection.
 */
Test(command, waits_for_a_busy_server_on_one_connection, .init = busy_up, .fini = server_down)
{
    static atomic_int code = 1;
    hl_client *client = open_client(
        CLIENT(.outage_timeout_ms = slow_ms(60000), .request_timeout_ms = slow_ms(60000)));
    int64_t id = reply_of(client, COMMAND(WORDS("CLIENT", "ID")))->integer;

    int post = redis_post(server, "EVAL %s 0", "while true do end");
    check(wait_until(is_busy, NULL, 20000));
    uint64_t before = stats_of(client).commands;
    expect_ok(hl_client_command_async(client, COMMAND(WORDS("INCR", "n"), .key = "n"),
                                      answered_with, &code));
    wait_stat(client, commands, before + 4); /* it was sent again, with its PING */
    redis_str(server, "SCRIPT KILL");
    check(wait_until(is_answered, &code, 60000));
    check_int(atomic_load(&code), HL_OK);
    check_int(redis_int(server, "GET n"), 1);
    check_int(reply_of(client, COMMAND(WORDS("CLIENT", "ID")))->integer, id);
    close(post);
}
