/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* write WHO [stop]: holds the fenced lock "report", and writes its name into "report:last" with the
 * token of the hold; "stop": stands still before the write. docs/tutorial.md explains it. */
#define _POSIX_C_SOURCE 200809L
#include <hirelock/hirelock.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_last(hl_client *client, const char *who, uint64_t token, hl_error *err)
{
    hl_fenced_write write = HL_FENCED_WRITE_INIT;

    write.key = "report:last";
    write.value = who;
    write.value_length = strlen(who);
    write.token = token;
    return hl_fence_set(client, &write, err);
}

static int hold_and_write(hl_client *client, hl_lock *lock, const char *who, bool stops,
                          hl_error *err)
{
    int rc = hl_lock_acquire_for(lock, 60000, err);

    if (rc < 0)
        return rc;
    uint64_t token = hl_lock_token(lock, NULL);
    printf("%s: mine, token %" PRIu64 "\n", who, token);
    if (stops)
        raise(SIGSTOP); /* a debugger, a busy host, or a virtual machine that is moved */
    rc = write_last(client, who, token, err);
    printf("%s: %s\n", who, rc == 0 ? "written" : err->text);
    return hl_lock_release(lock, err);
}

int main(int argc, char **argv)
{
    const char *url = getenv("REDIS_URL"), *who = argc > 1 ? argv[1] : "somebody";
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_lock_options kind = HL_LOCK_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    setvbuf(stdout, NULL, _IOLBF, 0);
    options.watchdog_timeout_ms = 3000;
    kind.kind = HL_LOCK_FENCED;
    kind.name = "report";
    if (hl_client_open(url ? url : "redis://127.0.0.1", &options, &client, &err) == 0 &&
        hl_lock_new_with(client, &kind, &lock, &err) == 0)
        hold_and_write(client, lock, who, argc > 2, &err);
    if (err.code < 0)
        printf("%s: at the end: %s\n", who, err.text);
    hl_lock_free(lock);
    hl_client_close(client);
    return err.code < 0;
}
