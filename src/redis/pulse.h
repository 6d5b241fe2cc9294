/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A pulse: a PING now and then on a connection that may be idle, so that a silence is noticed. Loop
 * thread. */
#ifndef HLI_REDIS_PULSE_H
#define HLI_REDIS_PULSE_H

#include "redis/conn.h"

struct hli_pulse {
    struct hli_conn *conn; /* borrowed */
    struct hli_op op;
    bool in_flight;
};

/* Errors: HL_ENOMEM. */
int hli_pulse_init(struct hli_pulse *pulse, struct hli_conn *conn);
void hli_pulse_deinit(struct hli_pulse *pulse);

/* Unless the last one is not answered yet: then the connection's patience decides. */
void hli_pulse_beat(struct hli_pulse *pulse);

#endif
