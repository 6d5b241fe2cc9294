/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A fake server's default answers: those of a healthy, empty Redis. */
#ifndef HL_TEST_FAKE_MANNERS_H
#define HL_TEST_FAKE_MANNERS_H

#include "fake_reply.h"
#include "resp.h"

/* *channels is the number of this connection's subscriptions; `number` is its CLIENT ID. */
void fake_manners_answer(const struct resp_command *command, struct fake_reply *reply, int number,
                         int *channels);

#endif
