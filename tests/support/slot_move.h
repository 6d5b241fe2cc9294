/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * One slot of a cluster on its way from one master to another, step by step: between begin and end
 * the old master serves the keys that it still has and answers ASK for the others.
 */
#ifndef HL_TEST_SLOT_MOVE_H
#define HL_TEST_SLOT_MOVE_H

#include "redis_cluster.h"

struct slot_move {
    struct redis_cluster *cluster;
    int slot;
    struct redis_server *from, *to;
};

struct slot_move slot_move_begin(struct redis_cluster *cluster, int slot, struct redis_server *to);

int slot_move_keys(const struct slot_move *move); /* all that are there; returns their number */
bool slot_move_key(const struct slot_move *move, const char *name); /* false: there is no such */

/* What keys are left are moved, and the new master serves the slot. Returns when all is whole. */
void slot_move_end(const struct slot_move *move);

/* The old master serves it as before; no key has been moved. */
void slot_move_undo(const struct slot_move *move);

/* Begin, keys, end. */
void slot_move(struct redis_cluster *cluster, int slot, struct redis_server *to);

#endif
