/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* OpenSSL's side of a client's context of TLS (tls.h), for the connections that are made of it. */
#ifndef HLI_REDIS_TLS_CONTEXT_H
#define HLI_REDIS_TLS_CONTEXT_H

#include "redis/tls.h"

#include <openssl/types.h>

/* Borrowed: OpenSSL's object, of the files as they are now. Errors: HL_EINVAL with the reason;
 * HL_ENOMEM. */
int hli_tls_context_look(struct hli_tls_context *context, SSL_CTX **ret_made, hl_error *err);

#endif
