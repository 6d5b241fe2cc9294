/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A thread that loses its core between its decision to send a request and the sending: the linker
 * puts a stop in front of hli_link_send() for it (LINKER:--wrap=hli_link_send). */
#ifndef HL_TEST_STOP_BEFORE_SENDING_H
#define HL_TEST_STOP_BEFORE_SENDING_H

#include "redis/link.h"
#include "support/test.h"

void __real_hli_link_send(struct hli_link *link, struct hli_op *op);
void __wrap_hli_link_send(struct hli_link *link, struct hli_op *op);

static _Thread_local bool is_to_stop;
static atomic_int script_to_stop = -1, sends_to_pass; /* or who sends this script behind so many */
static atomic_bool has_stopped, may_go_on, has_sent;

static bool is_set(void *flag)
{
    return *(atomic_bool *)flag;
}

static bool is_script_to_stop(const struct hli_op *op)
{
    if (script_to_stop < 0 || op->script != script_to_stop ||
        atomic_fetch_sub(&sends_to_pass, 1) > 0)
        return false;
    script_to_stop = -1;
    return true;
}

void __wrap_hli_link_send(struct hli_link *link, struct hli_op *op)
{
    bool stops = is_to_stop || is_script_to_stop(op);
    is_to_stop = false;
    if (stops) {
        has_stopped = true;
        wait_until(is_set, &may_go_on, 60000);
    }
    __real_hli_link_send(link, op);
    if (stops)
        has_sent = true;
}

#endif
