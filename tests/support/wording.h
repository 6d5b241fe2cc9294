/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The wording of requests (src/lease/calls/wording.h) of a client at a single server. */
#ifndef HL_TEST_WORDING_H
#define HL_TEST_WORDING_H

#include <hirelock/hirelock.h>

struct hli_wording;

/* From now on the client words its requests so. Its channels are sharded if its messages are. */
void word_as(hl_client *client, const struct hli_wording *wording);

#endif
