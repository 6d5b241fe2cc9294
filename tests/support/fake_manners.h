/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* How a healthy, empty Redis answers: what a fake server falls back on. */
#ifndef HL_TEST_FAKE_MANNERS_H
#define HL_TEST_FAKE_MANNERS_H

#include "fake_reply.h"
#include "resp.h"

/* *channels is the number of this connection's subscriptions; `number` is its CLIENT ID. */
void fake_manners_answer(const struct resp_command *command, struct fake_reply *reply, int number,
                         int *channels);

#endif
