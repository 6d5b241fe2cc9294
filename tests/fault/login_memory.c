/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Logins while memory is short: a client that opens by a callback, and the renewal on live
 * connections, with each allocation failing once. */

#include "login_kit.h"
#include "memory_kit.h"

static struct desk desk = DESK_INIT;

static void login_memory_up(void)
{
    memory_up_with(&(struct redis_options){.config = LOGIN_USERS});
}

#define MemoryLaw(name) Test(login_memory, name, .init = login_memory_up, .fini = memory_down)

struct opening {
    hl_client *client;
    hl_error err;
    int code;
};

static void opening_prepare(void *arg)
{
    *(struct opening *)arg = (struct opening){.err = HL_ERROR_INIT};
}

static void opening_run(void *arg)
{
    struct opening *opening = arg;

    opening->code =
        hl_client_open(redis_server_url(server), LOGIN(&desk), &opening->client, &opening->err);
}

static void opening_verify(void *arg, bool failed)
{
    struct opening *opening = arg;

    if (opening->code == HL_OK) {
        kit_try_out(opening->client, "opened");
        expect_ok(hl_client_close(opening->client));
    } else {
        check_msg(failed && (opening->code == HL_ENOMEM || opening->code == HL_ECONN), "%s: %s",
                  hl_err_name(opening->code), opening->err.text);
        check_msg(strstr(opening->err.text, "memory") ||
                      strstr(opening->err.text, "temporarily unavailable"),
                  "%s", opening->err.text);
        check(!opening->client);
    }
    kit_expect_no_threads();
}

MemoryLaw(an_open_by_a_callback_succeeds_or_leaves_nothing)
{
    struct opening opening;
    const struct failing_scenario scenario = {.scope = FAILING_PROCESS,
                                              .prepare = opening_prepare,
                                              .run = opening_run,
                                              .verify = opening_verify,
                                              .arg = &opening};

    desk_gives(&desk, "app", ONE, 0);
    check(sweep_without_leaks(&scenario) >= 30);
}

/* A renewal each second: with a hold, and with a subscription that is left and entered again. */
static hl_client *client;

static atomic_int told;

static void count_line(hl_log_level level, const char *text, void *arg)
{
    (void)level, (void)arg;
    if (strstr(text, "logged in again") || strstr(text, "is not renewed"))
        atomic_fetch_add(&told, 1);
}

/* Allocates nothing itself. The line may be what finds no memory. */
static void renewal_run(void *arg)
{
    int asked = atomic_load(&desk.asked), before = atomic_load(&told);

    (void)arg;
    check(desk_was_asked(&desk, asked + 1, 20000));
    struct deadline deadline = deadline_of_wait(300);
    while (atomic_load(&told) == before && !deadline_is_over(deadline))
        deadline_nap();
}

static void renewal_verify(void *arg, bool failed)
{
    (void)arg, (void)failed;
    kit_try_out(client, "renewed");
}

MemoryLaw(a_renewal_succeeds_or_is_tried_again)
{
    const struct failing_scenario scenario = {
        .scope = FAILING_PROCESS, .step = 3, .run = renewal_run, .verify = renewal_verify};

    desk_gives(&desk, "app", ONE, 1);
    client = open_client(LOGIN(&desk, .on_log = count_line, .log_level = HL_LOG_DEBUG));
    kit_try_out(client, "before");
    check(failing_malloc_sweep(&scenario) >= 3);
    int asked = atomic_load(&desk.asked);
    check(desk_was_asked(&desk, asked + 2, 20000));
    desk_gives(&desk, "next", TWO, 0);
    check(login_wait("next", 2, 20000));
    close_client(client);
}
