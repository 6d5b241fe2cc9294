/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Replies to requests, with the headers that all of them have. */
#ifndef SHOP_REPLY_H
#define SHOP_REPLY_H

#include "http.h"

void reply_bytes(const struct http *http, struct evhttp_request *request, const char *type,
                 const void *bytes, size_t size);
void reply_text(const struct http *http, struct evhttp_request *request, int status,
                const char *text);

/* {"error": why} */
void reply_refuse(const struct http *http, struct evhttp_request *request, int status,
                  const char *why);

/* What became of an order. */
void reply_answer(const struct http *http, struct evhttp_request *request, const struct job *job);

#endif
