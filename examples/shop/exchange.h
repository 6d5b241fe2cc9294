/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* One POST /buy, from the request to the last byte of its answer. */
#ifndef SHOP_EXCHANGE_H
#define SHOP_EXCHANGE_H

#include "http.h"

/* Loop thread. */
void exchange_begin(struct http *http, struct evhttp_request *request);
void exchange_answer(struct job *job);

#endif
