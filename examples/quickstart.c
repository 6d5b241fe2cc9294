/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The shortest complete program: take a lock, work, let go. */
#include <hirelock/hirelock.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1";
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    hl_error err = HL_ERROR_INIT;

    if (hl_client_open(url, NULL, &client, &err) == 0 &&
        hl_lock_new(client, "stock:42", &lock, &err) == 0 &&
        hl_lock_acquire_for(lock, 500, &err) == 0) { /* waits at most 500 ms; renewed while held */
        puts("mine");
        hl_lock_release(lock, &err);
    }
    if (err.code < 0)
        fprintf(stderr, "%s\n", err.text);
    hl_lock_free(lock); /* NULL is fine */
    hl_client_close(client);
    return err.code < 0;
}
