/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The embedded scripts: each is the file that it says, whole, under the digest Redis gives it. */

#include "redis/script.h"
#include "support/redis_probe.h"
#include "support/redis_server.h"
#include "support/test.h"

#include <string.h>

static struct redis_server *server;

static void script_server_start(void)
{
    server = redis_server_start(NULL);
}

static void script_server_stop(void)
{
    redis_server_stop(server);
}

Test(script, has_the_digest_that_redis_gives_it, .init = script_server_start,
     .fini = script_server_stop, .timeout = 30)
{
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        check_str(script->sha1,
                  redis_str(server, "SCRIPT LOAD %b", (const char *)script->text, script->length));
    }
}

Test(script, is_found_by_redis_under_its_digest, .init = script_server_start,
     .fini = script_server_stop, .timeout = 30)
{
    const struct hli_script *script = hli_script_get(HLI_SCRIPT_LOCK_FORCE_RELEASE);
    check_str(redis_str(server, "SCRIPT LOAD %b", (const char *)script->text, script->length),
              script->sha1);
    redis_do(server, "HSET name field 1");
    check_str(redis_str(server, "EVALSHA %s 1 name channel PUBLISH", script->sha1), "1");
    check_str(redis_str(server, "EVALSHA %s 1 name channel PUBLISH", script->sha1), "0");
    check_int(redis_int(server, "EXISTS name"), 0);
}

Test(script, carries_the_name_of_its_enum)
{
    check_str(hli_script_get(HLI_SCRIPT_LOCK_ACQUIRE)->name, "lock_acquire");
    check_str(hli_script_get(HLI_SCRIPT_LOCK_INSPECT)->name, "lock_inspect");
}

Test(script, ends_where_its_file_ends)
{
    for (int id = 0; id < HLI_SCRIPT_COUNT; id++) {
        const struct hli_script *script = hli_script_get((hli_script_id)id);
        check(script->length > 0);
        check_int(script->text[script->length - 1], '\n');
        check(memchr(script->text, '\0', script->length) == NULL);
    }
}
