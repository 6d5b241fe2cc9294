/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Proxies that lose their server for a while, and answer by an error of their own: that is an
 * outage, whichever command it meets, and no denial. Servers without some of the commands. */

#include "support/actor.h"
#include "support/command.h"
#include "support/events.h"
#include "support/fake_server.h"
#include "support/proxy.h"

#include <stdio.h>
#include <string.h>

static struct events events;
static struct proxy *proxy;
static hl_client *client;

/* User app needs a login, which the server accepts whatever it is; the default user needs none, so
 * that the proxy can answer before the login. */
static void proxy_up(void)
{
    server_up_with(&(struct redis_options){
        .tcp = true, .plain = true, .config = "user app on nopass ~* &* +@all"});
    proxy = new_proxy();
    client =
        open_client_at(proxy_url(proxy), CLIENT(.username = "app", .password = "not-to-be-shown",
                                                .backoff_max_ms = 50, .poll_ms = 100,
                                                .on_event = count_event, .arg = &events));
}

#define ProxyLaw(name) Test(proxy, name, .init = proxy_up, .fini = server_down)

static bool has_answered_twice(void *arg)
{
    return proxy_answered(arg) >= 2;
}

/* A call that waits while the proxy answers so has the lock when the proxy does not any more. */
static void expect_outlived(const char *words, const char *error, bool is_lost)
{
    hl_lock *lock = new_lock(client, "stock");
    struct actor *call = NULL;

    proxy_answer(proxy, words, error);
    if (is_lost)
        proxy_kill_all(proxy);
    call = actor_start_acquire(lock, ACQUIRE(.wait_ms = slow_ms(30000)));
    check(wait_until(has_answered_twice, proxy, 20000));
    proxy_answer(proxy, NULL, NULL);
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, lock, NULL));
    actor_stop(call);
    free_lock(lock);
}

ProxyLaw(that_loses_its_server_at_the_login_is_an_outage)
{
    expect_outlived("AUTH", "ERR upstream failure", true);
}

ProxyLaw(without_a_server_at_the_login_is_an_outage)
{
    expect_outlived("AUTH", "no upstream host", true);
}

ProxyLaw(that_loses_its_server_at_the_first_commands_is_an_outage)
{
    expect_outlived("PING", "NOAUTH Authentication required.", true);
}

ProxyLaw(that_loses_its_server_at_a_script_is_an_outage)
{
    expect_outlived("EVALSHA", "ERR upstream failure", false);
}

ProxyLaw(whose_new_connection_to_the_server_has_no_login_is_an_outage)
{
    expect_outlived("EVALSHA", "NOAUTH Authentication required.", false);
}

/* Without messages a waiter polls. */
ProxyLaw(that_loses_its_server_at_a_subscription_keeps_no_waiter_out)
{
    hl_client *other = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *others = new_lock(other, "stock");

    expect_ok(hl_lock_acquire(others, ERR));
    proxy_answer(proxy, "SUBSCRIBE", "ERR upstream failure");
    proxy_kill_all(proxy);
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = slow_ms(30000)));
    check(wait_until(has_answered_twice, proxy, 20000));
    expect_ok(hl_lock_release(others, ERR));
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, lock, NULL));
    actor_stop(call);
}

static bool is_let_in(void *arg)
{
    return hl_client_ping(arg, -1, NULL) == HL_OK;
}

static void expect_denied(const char *error)
{
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = new_lock(client, "stock");

    proxy_answer(proxy, "AUTH", error);
    proxy_kill_all(proxy);
    expect_outcome(hl_lock_acquire_for(lock, slow_ms(30000), &err), HL_EDENIED);
    check_has(err.text, "the server refused the user or password");
    check(!strstr(err.text, "not-to-be-shown"));
    proxy_answer(proxy, NULL, NULL);
    check(wait_until(is_let_in, client, 20000));
    free_lock(lock);
}

ProxyLaw(that_denies_the_login_says_so_at_once)
{
    expect_denied("WRONGPASS invalid username-password pair or user is disabled.");
    expect_denied("ERR invalid password not-to-be-shown");
    expect_denied("ERR Client sent AUTH, but no password is set");
}

/* As Envoy: PING has no argument, and is answered by the proxy itself. */
static bool answer_as_envoy(const struct resp_command *command, struct fake_reply *reply, void *arg)
{
    if (resp_command_begins(command, "PING") && command->argc == 2)
        fake_reply_text(reply, arg);
    else if (resp_command_begins(command, "GET"))
        fake_reply_text(reply, "$4\r\nfive\r\n");
    else
        return false;
    return true;
}

static void expect_commands_served(char *pong)
{
    struct fake_server *fake = fake_server_start(answer_as_envoy, pong);
    hl_client *user = open_client_at(fake_server_url(fake), NULL);

    for (int i = 0; i < 3; i++)
        check_str(reply_of(user, COMMAND(WORDS("GET", "n"), .key = "n"))->text, "five");
    check_int(fake_server_accepted(fake), 3); /* none was dropped */
    close_client(user);
    fake_server_stop(fake);
}

Test(proxy, that_answers_ping_itself_serves_commands)
{
    expect_commands_served("+PONG\r\n");
    expect_commands_served("-wrong number of arguments for command\r\n");
    expect_commands_served("-NOPERM User app has no permissions to run the 'ping' command\r\n");
}

#define MissingLaw(name) Test(missing_command, name, .fini = server_down)

/* One client waits for another, and has the lock when that releases it. */
static void expect_served_without(const char *command)
{
    char config[64];

    snprintf(config, sizeof config, "rename-command %s \"\"", command);
    server_up_with(&(struct redis_options){.config = config});
    client = open_client(CLIENT(.poll_ms = 100));
    hl_client *other = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock"), *others = new_lock(other, "stock");

    expect_ok(hl_lock_acquire(others, ERR));
    struct actor *call = actor_start_acquire(lock, ACQUIRE(.wait_ms = slow_ms(30000)));
    expect_waiters(client, 1);
    expect_ok(hl_lock_release(others, ERR));
    expect_ok(actor_end(call));
    expect_ok(actor_release(call, lock, NULL));
    actor_stop(call);
}

MissingLaw(client_is_not_missed)
{
    expect_served_without("CLIENT");
}

MissingLaw(info_is_not_missed)
{
    expect_served_without("INFO");
}

MissingLaw(role_is_not_missed)
{
    expect_served_without("ROLE");
}

MissingLaw(publish_is_made_up_for_by_asking)
{
    expect_served_without("PUBLISH");
}

MissingLaw(subscribe_is_made_up_for_by_asking)
{
    expect_served_without("SUBSCRIBE");
}

MissingLaw(script_is_named_by_the_error)
{
    hl_error err = HL_ERROR_INIT;

    server_up_with(&(struct redis_options){.config = "rename-command SCRIPT \"\""});
    client = open_client(NULL);
    expect_outcome(hl_lock_acquire_for(new_lock(client, "stock"), 0, &err), HL_ESERVER);
    check_has(err.text, "SCRIPT LOAD");
    check_has(err.text, "unknown command");
}
