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
static atomic_bool has_stopped, may_go_on, has_sent;

static bool is_set(void *flag)
{
    return *(atomic_bool *)flag;
}

void __wrap_hli_link_send(struct hli_link *link, struct hli_op *op)
{
    bool stops = is_to_stop;
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
