/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A server of the tests starts, dies, freezes, remembers and tells the time as it is told to. */

#include <unistd.h>

#include "support/aof.h"
#include "support/raw_client.h"
#include "support/redis_probe.h"
#include "support/redis_program.h"
#include "support/test.h"

Test(support_server, answers_and_counts_what_clients_ask)
{
    struct redis_server *server = redis_server_start(NULL);
    redis_do(server, "SET %s %d", "a b", 5);
    check_int(redis_int(server, "GET %s", "a b"), 5);
    check_int(redis_int(server, "GET none"), -1);
    check_str(redis_str(server, "PING"), "PONG");
    check_str(redis_str(server, "MGET none %s", "a b"), "(nil) 5");
    check_int(redis_evalsha_calls(server), 0);
    const char *digest = redis_str(server, "SCRIPT LOAD %s", "return redis.call('INCR','n')");
    check_str(redis_str(server, "EVALSHA %s 0", digest), "1");
    check_int(redis_evalsha_calls(server), 1);
    check_int(redis_calls(server, "incr"), 1);
    check(redis_server_cpu_us(server) > 0);
    redis_server_stop(server);
}

Test(support_server, keeps_its_keys_over_a_kill_only_with_the_append_only_file)
{
    struct redis_server *kept = redis_server_start(&(struct redis_options){.appendonly = true});
    struct redis_server *lost = redis_server_start(NULL);
    redis_do(kept, "SET k 1");
    redis_do(lost, "SET k 1");
    redis_server_kill(kept);
    redis_server_restart(kept);
    redis_server_restart(lost);
    check_int(redis_int(kept, "EXISTS k"), 1);
    check_int(redis_int(lost, "EXISTS k"), 0);
    redis_server_kill(kept);
    redis_server_wipe(kept);
    redis_server_restart(kept);
    check_int(redis_int(kept, "EXISTS k"), 0);
    redis_server_stop(kept);
    redis_server_stop(lost);
}

Test(support_server, is_silent_while_frozen_and_answers_when_thawed)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.tcp = true});
    redisContext *link = raw_connect(redis_server_port(server));
    redis_server_freeze(server);
    raw_send(link, "PING");
    check(!raw_is_readable(link, 100));
    redis_server_thaw(server);
    check(raw_is_readable(link, slow_ms(5000)));
    redisFree(link);
    redis_server_stop(server);
}

Test(support_server, lets_the_tests_in_past_every_password)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){
        .tcp = true, .password = "secret", .config = "user locker on >pw ~lk:* -@all +ping"});
    redisContext *link = raw_connect(redis_server_port(server));
    check_str(raw_ask(link, "PING"), "NOAUTH Authentication required.");
    check_str(raw_ask(link, "AUTH secret"), "OK");
    check_str(raw_ask(link, "AUTH locker pw"), "OK");
    check_str(raw_ask(link, "PING"), "PONG");
    check(strncmp(raw_ask(link, "GET x"), "NOPERM", 6) == 0);
    check_str(redis_str(server, "GET x"), "(nil)");
    redisFree(link);
    redis_server_stop(server);
}

Test(support_server, counts_clients_by_kind_and_subscribers)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.tcp = true});
    redisContext *normal = raw_connect(redis_server_port(server));
    redisContext *pubsub = raw_connect(redis_server_port(server));
    check_str(raw_ask(normal, "CLIENT SETNAME hirelock"), "OK");
    check_str(raw_ask(pubsub, "CLIENT SETNAME hirelock-7"), "OK");
    raw_send(pubsub, "SUBSCRIBE c");
    check(redis_wait_subscribers(server, "c", 1, 5000));
    check(redis_wait_clients(server, REDIS_NORMAL, 1, 5000));
    check_int(redis_clients(server, REDIS_PUBSUB, "hirelock"), 1);
    check_int(redis_kill_clients(server, REDIS_PUBSUB), 1);
    check(redis_wait_subscribers(server, "c", 0, 5000));
    check(!redis_wait_clients(server, REDIS_NORMAL, 2, 20));
    redisFree(normal);
    redisFree(pubsub);
    redis_server_stop(server);
}

Test(support_server, posts_what_it_does_not_wait_for)
{
    struct redis_server *server = redis_server_start(NULL);
    int fd = redis_post(server, "BLPOP list 0");
    check(redis_wait_int(server, 1, 5000, "LPUSH list %s", "x"));
    check(redis_wait_int(server, 0, 5000, "LLEN list"));
    close(fd);
    redis_server_stop(server);
}

Test(support_server, has_a_clock_that_can_be_stepped)
{
    if (!redis_server_has_clock_shim())
        skip("the clock shim is not built");
    struct redis_server *server = redis_server_start(&(struct redis_options){.clock_shim = true});
    redis_do(server, "SET k 1 PX 30000");
    redis_server_step_clock(server, -60000);
    check_msg(redis_int(server, "PTTL k") > 80000, "a step back must lengthen the lease");
    redis_server_step_clock(server, 70000);
    int64_t left = redis_int(server, "PTTL k");
    check_msg(left > 0 && left <= 20000, "PTTL is %lld", (long long)left);
    redis_server_step_clock(server, 60000);
    check_int(redis_int(server, "EXISTS k"), 0);
    redis_server_stop(server);
}

Test(support_server, is_asked_what_it_can_do)
{
    check(redis_program_knows("appendonly yes"));
    check(!redis_program_knows("append-only yes"));
    check(!redis_program_knows("appendonly perhaps"));
}

/* Other subcommands stay: the tests' own user needs CLIENT LIST. */
Test(support_server, denies_a_subcommand_and_no_other)
{
    struct redis_server *server =
        redis_server_start(&(struct redis_options){.config = REDIS_LOGS_CALLS});
    redis_deny(server, "hltest", "client|kill");
    check_has(redis_str(server, "CLIENT KILL ID 1000"), "NOPERM");
    check_int(redis_clients(server, REDIS_NORMAL, "none"), 0);
    check(redis_int(server, "CLIENT ID") > 0);
    redis_deny(server, "hltest", "time");
    check_has(redis_str(server, "TIME"), "NOPERM");
    check_int(redis_subcommand_calls(server, "client", "list"), 1);
    check_int(redis_subcommand_calls(server, "client", "pause"), 0);
    redis_server_stop(server);
}

struct aof_seen {
    int sets;
    int64_t at_s;
};

static void aof_see(const struct resp_command *command, int64_t at_s, void *arg)
{
    struct aof_seen *seen = arg;
    seen->sets += resp_command_begins(command, "SET k") && resp_command_arg_is(command, 2, "v");
    seen->at_s = at_s;
}

Test(support_aof, shows_what_the_server_did_in_order)
{
    struct redis_server *server = redis_server_start(&(struct redis_options){.appendonly = true});
    struct aof_seen seen = {.sets = 0};
    redis_do(server, "SET k v");
    redis_do(server, "PEXPIRE k 30000");
    redis_do(server, "DEL k");
    check_int(aof_read(server, aof_see, &seen), 4); /* SELECT comes first */
    check_int(seen.sets, 1);
    check(seen.at_s > 0 || !redis_program_knows("aof-timestamp-enabled yes"));
    check_int(aof_count(server, "PEXPIREAT k"), 1);
    check_int(aof_count(server, "DEL k"), 1);
    redis_server_stop(server);
}
