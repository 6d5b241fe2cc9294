/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* GET /metrics: the locks' metrics, and a few of the shop's own. */
#ifndef SHOP_METRICS_H
#define SHOP_METRICS_H

#include "http.h"

#include <event2/buffer.h>

/* False: there is no memory, or the client says why by hl_err_last(). */
bool metrics_add(struct evbuffer *text, const struct http *http);

#endif
