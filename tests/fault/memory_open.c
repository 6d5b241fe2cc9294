/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A client is opened with each allocation failing once, whichever thread's it is: it is open, or
 * nothing is left of it, and the words say why. */
#include "memory_kit.h"

#include "support/census.h"
#include "support/grace.h"

static int files_before;

struct subject {
    hl_client *client;
    hl_error err;
    int code;
};

static void open_prepare(void *arg)
{
    struct subject *subject = arg;
    subject->client = NULL;
    subject->err = (hl_error)HL_ERROR_INIT;
}

static char open_url[128];
static bool open_with_tls;
static struct redis_server *sentinel; /* NULL: the URL names the server itself */
static bool open_by_name;             /* who resolves names has other words for what is short */

static void leave_address(hl_address *address, void *arg)
{
    (void)address, (void)arg;
}

static void open_with_all(void *arg)
{
    static const char password[] = "secret";
    struct subject *subject = arg;
    hl_client_options options = kit_options(slow_ms(1000), NULL);
    options.on_event = ignore_event;
    options.address_map = leave_address;
    options.name_prefix = "prefix:";
    options.client_name = "memory";
    options.password = password;
    options.connect_timeout_ms = slow_ms(3000); /* a question to a name server may get lost */
    if (sentinel)
        options.sentinel_password = "watch";
    else if (!open_with_tls)
        options.failover_grace_ms = options.watchdog_timeout_ms;
    if (open_with_tls)
        options.tls_ca_file = redis_server_authority();
    subject->code = hl_client_open(open_url, &options, &subject->client, &subject->err);
}

static void open_verify(void *arg, bool failed)
{
    struct subject *subject = arg;
    if (subject->code == HL_OK) {
        kit_try_out(subject->client, "opened");
        close_client(subject->client);
    } else {
        bool by_openssl = open_with_tls && strstr(subject->err.text, "TLS: ");
        check_msg(failed && (subject->code == HL_ENOMEM || subject->code == HL_ECONN || by_openssl),
                  "open ended with %s (%s)", hl_err_name(subject->code), subject->err.text);
        /* the latter are pthread_create's words for it; OpenSSL has many */
        check_msg(open_by_name || by_openssl || strstr(subject->err.text, "memory") ||
                      strstr(subject->err.text, "temporarily unavailable"),
                  "%s", subject->err.text);
        check(!subject->client);
    }
    kit_expect_no_threads();
    check_int(census_files(), files_before);
}

static void open_start(void)
{
    memory_up_tcp();
    grace_serve(server, false);
    redis_do(server, "CONFIG SET requirepass secret");
    redis_do(server, "PING");
    files_before = census_files();
}

static struct failing_scenario open_scenario(enum failing_scope scope, struct subject *subject)
{
    return (struct failing_scenario){.scope = scope,
                                     .prepare = open_prepare,
                                     .run = open_with_all,
                                     .verify = open_verify,
                                     .arg = subject};
}

Test(memory_calls, open_succeeds_or_leaves_nothing, .init = open_start, .fini = memory_down)
{
    struct subject subject;
    snprintf(open_url, sizeof open_url, "unix://%s", redis_server_socket(server));
    struct failing_scenario scenario = open_scenario(FAILING_THREAD, &subject);
    check(sweep_without_leaks(&scenario) >= 8);
    scenario = open_scenario(FAILING_PROCESS, &subject);
    check(sweep_without_leaks(&scenario) >= 30);
}

Test(memory_calls, open_by_name_succeeds_or_leaves_nothing, .init = open_start, .fini = memory_down)
{
    struct subject subject;
    struct failing_scenario scenario = open_scenario(FAILING_PROCESS, &subject);
    snprintf(open_url, sizeof open_url, "redis://localhost:%d", redis_server_port(server));
    open_by_name = true;
    check(failing_malloc_sweep(&scenario) >= 40);
}

static void open_start_tls(void)
{
    memory_up_with(&(struct redis_options){.tls = true, .password = "secret"});
    files_before = census_files();
}

/* OpenSSL has things of the whole process, which it makes once: they are there before. */
Test(memory_calls, open_with_tls_succeeds_or_leaves_nothing, .init = open_start_tls,
     .fini = memory_down)
{
    struct subject subject;
    struct failing_scenario scenario = open_scenario(FAILING_PROCESS, &subject);
    snprintf(open_url, sizeof open_url, "%s", redis_server_url(server));
    open_with_tls = true;
    open_prepare(&subject);
    open_with_all(&subject);
    open_verify(&subject, false);
    scenario.step = 23; /* an open makes thousands */
    check(failing_malloc_sweep(&scenario) >= 50);
}

static void open_start_sentinel(void)
{
    char config[200];

    open_start();
    snprintf(config, sizeof config,
             "sentinel monitor mymaster 127.0.0.1 %d 1\nsentinel auth-pass mymaster secret",
             redis_server_port(server));
    sentinel = redis_server_start(&(struct redis_options){
        .sentinel = true, .tcp = true, .password = "watch", .config = config});
    snprintf(open_url, sizeof open_url, "redis-sentinel://127.0.0.1:%d/mymaster",
             redis_server_port(sentinel));
    files_before = census_files();
}

static void open_end_sentinel(void)
{
    redis_server_stop(sentinel);
    memory_down();
}

Test(memory_calls, open_by_a_sentinel_succeeds_or_leaves_nothing, .init = open_start_sentinel,
     .fini = open_end_sentinel)
{
    struct subject subject;
    struct failing_scenario scenario = open_scenario(FAILING_THREAD, &subject);
    check(sweep_without_leaks(&scenario) >= 8);
    scenario = open_scenario(FAILING_PROCESS, &subject);
    check(sweep_without_leaks(&scenario) >= 60);
}
