/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Options in a URL and in the environment, as the server sees their effects. */

#include "support/kit.h"
#include "support/redis_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The server's URL with a query; its own has none. */
static const char *url_with(const char *query)
{
    static char url[512];

    snprintf(url, sizeof url, "%s?%s", redis_server_url(server), query);
    return url;
}

SingleLaw(option_words, of_a_url_reach_the_server)
{
    hl_client *client = open_client_at(
        url_with("watchdog_timeout=5s&name_prefix=shop%3A&client_name=till&connections=2"), NULL);
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    check_str(hl_lock_name(lock, NULL), "shop:stock");
    check_int(redis_int(server, "EXISTS shop:stock"), 1);
    check(redis_int(server, "PTTL shop:stock") <= 5000);
    check_has(redis_str(server, "CLIENT LIST"), "name=till");
    expect_ok(hl_lock_release(lock, ERR));
}

SingleLaw(option_words, of_the_environment_reach_the_server)
{
    setenv("HIRELOCK_URL", url_with("name_prefix=url:"), 1);
    setenv("HIRELOCK_NAME_PREFIX", "env:", 1);
    setenv("HIRELOCK_CLIENT_NAME", "till", 1);
    hl_client *client = NULL;
    expect_ok(hl_client_open(NULL, CLIENT(.flags = HL_CLIENT_ENVIRONMENT), &client, ERR));
    hl_lock *lock = new_lock(client, "stock");

    expect_ok(hl_lock_acquire(lock, ERR));
    check_int(redis_int(server, "EXISTS url:stock"), 1);
    check_has(redis_str(server, "CLIENT LIST"), "name=till");
    expect_ok(hl_lock_release(lock, ERR));
    expect_ok(hl_client_close(client));
}

SingleLaw(option_words, that_are_wrong_leave_no_client)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    expect_outcome(hl_client_open(url_with("watchdog_timout=5s"), NULL, &client, &err), HL_EINVAL);
    check_str(err.text, "URL: 'watchdog_timout' is no option; did you mean 'watchdog_timeout'?");
    check(client == NULL);
    setenv("HIRELOCK_CONNECTIONS", "99", 1);
    expect_outcome(hl_client_open(redis_server_url(server), CLIENT(.flags = HL_CLIENT_ENVIRONMENT),
                                  &client, &err),
                   HL_EINVAL);
    check_str(err.text, "HIRELOCK_CONNECTIONS: '99' is not from 1 to 16");
    check(client == NULL);
}
