/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The one-trip limit: two processes on blocking hiredis hand a lock to each other. The release is a
 * script that writes the other's field and publishes; the other is blocked in read(2) on its
 * subscription. No hand-over by way of a server can take less than this one request and this one
 * message.
 */
#ifndef HL_BENCH_TRIP_H
#define HL_BENCH_TRIP_H

#include "crowd.h"
#include "diary.h"
#include "hold.h"
#include "server.h"

struct trip {
    const struct server *server;
    struct diary *diary; /* shared; a turn's got_at is when read returned */
    struct hold hold;
};

extern const struct crowd_job trip_job; /* for two processes; its arg is a struct trip */

#endif
