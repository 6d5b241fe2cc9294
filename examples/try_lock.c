/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Wait time and lease time. A host holds a room for three seconds, without renewal; a guest asks
 * without waiting, waits a little, and then waits until the lease is over.
 */
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdio.h>

static int host_takes(hl_lock *room, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = HL_NO_WAIT; /* now or not at all */
    options.lease_ms = 3000;      /* ends by itself; without a lease time it would be renewed */
    return hl_lock_acquire_with(room, &options, err);
}

static int guest_asks(hl_lock *room, hl_owner *guest, int64_t wait_ms, hl_error *err)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;

    options.wait_ms = wait_ms;
    options.owner = guest; /* this thread has the room already: the guest is another owner */
    int rc = hl_lock_acquire_with(room, &options, err);
    if (rc == HL_EBUSY || rc == HL_ETIMEDOUT)
        printf("waited up to %lld ms: %s; its lease has %lld ms left\n", (long long)wait_ms,
               hl_err_text(rc), (long long)err->busy.lease_left_ms);
    else if (rc == 0)
        printf("waited up to %lld ms: got it\n", (long long)wait_ms);
    return rc;
}

/* Busy and timed out are answers, and the program decides what they mean to it; here they are what
 * we want to see. Anything else is a fault, and goes to the caller as it is. */
static int expect(int got, int wanted, hl_error *err)
{
    if (got == wanted)
        return 0;
    if (got < 0 && !hl_err_is_outcome(got))
        return got;
    snprintf(err->text, sizeof(err->text), "%s instead of %s", hl_err_name(got),
             hl_err_name(wanted));
    return -1;
}

static int visit(hl_lock *room, hl_owner *guest, hl_error *err)
{
    int rc = host_takes(room, err);

    if (rc == 0)
        rc = expect(guest_asks(room, guest, HL_NO_WAIT, err), HL_EBUSY, err);
    if (rc == 0)
        rc = expect(guest_asks(room, guest, 100, err), HL_ETIMEDOUT, err);
    if (rc == 0)
        rc = guest_asks(room, guest, 10000, err);
    if (rc < 0)
        return rc;
    /* The host's hold ended before its release. It must know that it was not alone any more; the
     * guest's hold is not touched. */
    rc = expect(hl_lock_release(room, err), HL_ELOST, err);
    if (rc == 0)
        rc = hl_lock_release_as(room, guest, err);
    return rc;
}

static int run(hl_client *client, hl_error *err)
{
    hl_lock *room = NULL;
    hl_owner *guest = NULL;
    int rc = hl_lock_new(client, "meeting room", &room, err);

    if (rc == 0 && (rc = hl_owner_new(client, &guest)) < 0)
        snprintf(err->text, sizeof(err->text), "%s", hl_err_text(rc));
    if (rc == 0)
        rc = visit(room, guest, err);
    if (rc == 0)
        puts("busy, timed out, then held when the lease was over");
    hl_owner_free(guest);
    hl_lock_free(room);
    return rc;
}

static const char does[] =
    "Wait time and lease time: a host holds a room for a second, a guest asks.";

int main(int argc, char **argv)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(example_url(argc, argv, does), NULL, &client, &err);

    if (rc == 0)
        rc = run(client, &err);
    if (rc < 0)
        fprintf(stderr, "try_lock: %s\n", err.text);
    hl_client_close(client);
    return rc < 0;
}
