/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Money goes from one account to another, which wants both locked. Two tellers send it in opposite
 * directions, and each names its own account first: with two locks, taken one after the other,
 * they would soon wait for each other for ever. A multi-lock takes both, or neither.
 */
#include "example.h"

#include <hirelock/hirelock.h>

#include <pthread.h>
#include <stdio.h>

enum { TRANSFERS = 200, DEPOSIT = 100 };

struct account {
    hl_lock *lock;
    long balance; /* guarded by the lock */
};

struct teller {
    struct account *from, *to;
    hl_error err;
};

static int transfer(struct account *from, struct account *to, long amount, hl_error *err)
{
    hl_lock *members[] = {from->lock, to->lock}, *both = NULL;
    int rc = hl_multi_lock_new(members, 2, NULL, &both, err); /* no I/O */

    if (rc == 0)
        rc = hl_lock_acquire_for(both, 10000, err);
    if (rc == 0) {
        from->balance -= amount;
        to->balance += amount;
        rc = hl_lock_release(both, err); /* HL_ELOST: somebody may have been at one of them too */
    }
    hl_lock_free(both);
    return rc;
}

static void *teller_work(void *arg)
{
    struct teller *teller = arg;

    for (int i = 0; i < TRANSFERS; i++)
        if (transfer(teller->from, teller->to, 1, &teller->err) < 0)
            break;
    return NULL;
}

/* Runs both tellers at once; returns the first error of either. */
static int run(struct account *anne, struct account *bert, hl_error *err)
{
    struct teller one = {anne, bert, HL_ERROR_INIT}, other = {bert, anne, HL_ERROR_INIT};
    pthread_t thread;

    if (pthread_create(&thread, NULL, teller_work, &one) != 0)
        return HL_ENOMEM;
    teller_work(&other);
    pthread_join(thread, NULL);
    *err = one.err.code < 0 ? one.err : other.err;
    return err->code;
}

static int open_accounts(hl_client *client, struct account *anne, struct account *bert,
                         hl_error *err)
{
    int rc = hl_lock_new(client, "account:anne", &anne->lock, err);

    return rc < 0 ? rc : hl_lock_new(client, "account:bert", &bert->lock, err);
}

static const char does[] = "Transfers between two accounts, which are locked as one.";

int main(int argc, char **argv)
{
    struct account anne = {NULL, DEPOSIT}, bert = {NULL, DEPOSIT};
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(example_url(argc, argv, does), NULL, &client, &err);

    if (rc == 0)
        rc = open_accounts(client, &anne, &bert, &err);
    if (rc == 0)
        rc = run(&anne, &bert, &err);
    if (rc < 0)
        fprintf(stderr, "transfer: %s: %s\n", hl_err_name(rc), err.text);
    else
        printf("%d transfers each way, %ld and %ld are left\n", TRANSFERS, anne.balance,
               bert.balance);
    hl_lock_free(anne.lock);
    hl_lock_free(bert.lock);
    hl_client_close(client);
    return rc < 0;
}
