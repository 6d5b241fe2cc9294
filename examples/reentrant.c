/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Nested calls. Each function of this warehouse takes the lock that it needs, and so they may call
 * each other: an owner that holds the lock already gets one level more, and the last release frees
 * it.
 */
#include "example.h"

#include <hirelock/hirelock.h>

#include <stdio.h>

struct warehouse {
    hl_lock *lock;
    int shelf, cellar; /* units in each */
    unsigned deepest;  /* levels that were held at once */
};

static int warehouse_enter(struct warehouse *house, hl_error *err)
{
    int rc = hl_lock_acquire_for(house->lock, 1000, err);

    if (rc == 0 && hl_lock_hold_count(house->lock, NULL) > house->deepest)
        house->deepest = hl_lock_hold_count(house->lock, NULL);
    return rc;
}

/* Every successful acquire needs one release, on every way out. When the work went well, the
 * release may still say that it was not alone (HL_ELOST): that is then the result. */
static int warehouse_leave(struct warehouse *house, int rc, hl_error *err)
{
    int left = hl_lock_release(house->lock, rc == 0 ? err : NULL);

    return rc == 0 ? left : rc;
}

static int fetch(struct warehouse *house, int units, hl_error *err)
{
    int rc = warehouse_enter(house, err);

    if (rc < 0)
        return rc;
    house->cellar -= units;
    house->shelf += units;
    return warehouse_leave(house, 0, err);
}

static int restock(struct warehouse *house, int wanted, hl_error *err)
{
    int rc = warehouse_enter(house, err);

    if (rc < 0)
        return rc;
    if (house->shelf < wanted)
        rc = fetch(house, wanted - house->shelf, err); /* takes the lock again */
    return warehouse_leave(house, rc, err);
}

static int sell(struct warehouse *house, int units, hl_error *err)
{
    int rc = warehouse_enter(house, err);

    if (rc < 0)
        return rc;
    rc = restock(house, units, err); /* and this does as well */
    if (rc == 0)
        house->shelf -= units;
    return warehouse_leave(house, rc, err);
}

static int run(hl_client *client, hl_error *err)
{
    struct warehouse house = {.shelf = 2, .cellar = 10};
    hl_lock_info info = HL_LOCK_INFO_INIT;
    int rc = hl_lock_new(client, "warehouse", &house.lock, err);

    if (rc == 0)
        rc = sell(&house, 5, err);
    if (rc == 0)
        rc = hl_lock_inspect(house.lock, &info, err); /* what the server says */
    if (rc == 0) {
        printf("sold 5; on the shelf %d, in the cellar %d\n", house.shelf, house.cellar);
        printf("%u levels deep, then %s\n", house.deepest, info.locked ? "still held" : "free");
    }
    hl_lock_free(house.lock);
    return rc;
}

static const char does[] = "Functions that take the same lock and call each other.";

int main(int argc, char **argv)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(example_url(argc, argv, does), NULL, &client, &err);

    if (rc == 0)
        rc = run(client, &err);
    if (rc < 0)
        fprintf(stderr, "reentrant: %s\n", err.text);
    hl_client_close(client);
    return rc < 0;
}
