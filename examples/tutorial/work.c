/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* work WHO [FILE]: holds the lock "stock:42" until the file is there, or as long as it is not lost;
 * without a file it has nothing to do. docs/tutorial.md explains it. */
#define _POSIX_C_SOURCE 200809L
#include <hirelock/hirelock.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Works in short steps until the file is there, and looks before each of them. */
static void work(hl_lock *lock, const char *who, const char *file)
{
    printf("%s: mine\n", who);
    while (file && access(file, F_OK) != 0 && hl_lock_is_held(lock, NULL))
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    if (hl_lock_is_held(lock, NULL))
        printf("%s: done\n", who);
}

int main(int argc, char **argv)
{
    const char *url = getenv("REDIS_URL"), *who = argc > 1 ? argv[1] : "somebody";
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    setvbuf(stdout, NULL, _IOLBF, 0);      /* so that lines of two processes come in their order */
    options.watchdog_timeout_ms = 3000;    /* the lease; renewed every third of it */
    options.flags = HL_CLIENT_HOLDER_INFO; /* so that others see who holds */
    if (hl_client_open(url ? url : "redis://127.0.0.1", &options, &client, &err) == 0 &&
        hl_lock_new(client, "stock:42", &lock, &err) == 0 &&
        hl_lock_acquire_for(lock, 60000, &err) == 0) {
        work(lock, who, argc > 2 ? argv[2] : NULL);
        hl_lock_release(lock, &err); /* always: the result says how the hold ended */
    }
    if (err.code < 0)
        printf("%s: %s\n", who, err.text);
    hl_lock_free(lock);
    hl_client_close(client);
    return err.code < 0;
}
