/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A user's program against the installed library: consumer URL. It is also the program that was
 * compiled before an option was added (its structs are shorter) and the one that was compiled
 * after (longer): the first must work, the second only while it leaves the addition at zero.
 */

#include <hirelock/hirelock.h>

#include <stdio.h>
#include <string.h>

static int passed, failed;

static void expect(const char *what, int actual, int expected)
{
    if (actual == expected) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL: %s: %s, not %s\n", what, hl_err_name(actual), hl_err_name(expected));
}

/* A later version of a struct: one more field behind ours. */
struct longer_client_options {
    hl_client_options ours;
    int64_t added;
};

struct longer_acquire_options {
    hl_acquire_options ours;
    int64_t added;
};

static void check_version(void)
{
    char compiled[32];
    snprintf(compiled, sizeof(compiled), "%d.%d.%d", HL_VERSION_MAJOR, HL_VERSION_MINOR,
             HL_VERSION_PATCH);
    expect("hl_version() is the headers' version", strcmp(hl_version(), compiled), 0);
}

static int open_and_close(const char *url, const hl_client_options *options)
{
    hl_client *client = NULL;
    int rc = hl_client_open(url, options, &client, NULL);
    if (rc == 0)
        hl_client_close(client);
    return rc;
}

static void check_client_options(const char *url)
{
    /* What lies behind the end of a short struct is other memory. */
    hl_client_options shorter = HL_CLIENT_OPTIONS_INIT;
    shorter.size = offsetof(hl_client_options, arg);
    memset(&shorter.arg, 0xff, sizeof(shorter.arg));
    expect("open, shorter options", open_and_close(url, &shorter), 0);

    struct longer_client_options longer = {HL_CLIENT_OPTIONS_INIT, 0};
    longer.ours.size = sizeof(longer);
    expect("open, longer options, zero tail", open_and_close(url, &longer.ours), 0);
    longer.added = 1;
    expect("open, longer options, used tail", open_and_close(url, &longer.ours), HL_EINVAL);
}

static int acquire_and_release(hl_lock *lock, const hl_acquire_options *options)
{
    int rc = hl_lock_acquire_with(lock, options, NULL);
    return rc == 0 ? hl_lock_release(lock, NULL) : rc;
}

static void check_acquire_options(hl_lock *lock, hl_owner *other)
{
    hl_acquire_options shorter = HL_ACQUIRE_OPTIONS_INIT;
    shorter.wait_ms = HL_NO_WAIT;
    shorter.size = offsetof(hl_acquire_options, on_event);
    memset(&shorter.on_event, 0xff, sizeof(shorter.on_event));
    expect("acquire, shorter options", acquire_and_release(lock, &shorter), 0);

    struct longer_acquire_options longer = {HL_ACQUIRE_OPTIONS_INIT, 0};
    longer.ours.size = sizeof(longer);
    expect("acquire, longer options, zero tail", acquire_and_release(lock, &longer.ours), 0);
    longer.added = 1;
    expect("acquire, longer options, used tail", acquire_and_release(lock, &longer.ours),
           HL_EINVAL);

    hl_acquire_options theirs = HL_ACQUIRE_OPTIONS_INIT;
    theirs.wait_ms = HL_NO_WAIT;
    theirs.owner = other;
    expect("acquire, another owner", hl_lock_acquire_with(lock, &theirs, NULL), 0);
    expect("acquire, shorter options, busy", acquire_and_release(lock, &shorter), HL_EBUSY);
    expect("release, another owner", hl_lock_release_as(lock, other, NULL), 0);
}

static void check_lock(const char *url)
{
    hl_client *client = NULL;
    hl_lock *lock = NULL;
    hl_owner *other = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(url, NULL, &client, &err);
    if (rc == 0)
        rc = hl_lock_new(client, "consumer", &lock, &err);
    if (rc == 0)
        rc = hl_owner_new(client, &other);
    expect("a client, a lock and an owner", rc, 0);
    if (rc == 0)
        check_acquire_options(lock, other);
    else
        printf("%s\n", err.text);
    hl_owner_free(other);
    hl_lock_free(lock);
    hl_client_close(client);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: consumer URL\n");
        return 2;
    }
    check_version();
    check_client_options(argv[1]);
    check_lock(argv[1]);
    printf("%d checks passed, %d failed\n", passed, failed);
    return failed != 0;
}
