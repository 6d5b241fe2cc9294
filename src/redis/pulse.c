/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Pulses. */
#include "redis/pulse.h"

#include "base/check.h"

/* Any answer will do: what is looked for is silence. */
static void pulse_answered(struct hli_op *op, const struct hli_answer *answer)
{
    (void)answer;
    HLI_OF(op, struct hli_pulse, op)->in_flight = false;
}

int hli_pulse_init(struct hli_pulse *pulse, struct hli_conn *conn)
{
    const struct hli_bytes word = hli_bytes_of("PING");

    pulse->conn = conn;
    pulse->op.done = pulse_answered;
    return hli_op_command(&pulse->op, &word, 1);
}

void hli_pulse_deinit(struct hli_pulse *pulse)
{
    hli_op_deinit(&pulse->op);
}

void hli_pulse_beat(struct hli_pulse *pulse)
{
    if (!pulse->in_flight)
        pulse->in_flight = hli_conn_send(pulse->conn, &pulse->op);
}
