/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A build without OpenSSL: no client has a context, and so there is never a TLS connection. */
#include "base/error.h"
#include "redis/tls.h"

int hli_tls_context_new(const hl_client_options *options, struct hli_tls_context **ret_context,
                        hl_error *err)
{
    (void)options, (void)ret_context;
    return hli_fail(err, HL_ENOTSUP,
                    "TLS: this build of hirelock has none: build it with OpenSSL (-DHL_TLS=ON)");
}

void hli_tls_context_free(struct hli_tls_context *context)
{
    (void)context;
}

int hli_tls_new(struct hli_tls_context *context, const char *host, struct hli_tls **ret_tls,
                hl_error *err)
{
    (void)context, (void)host, (void)ret_tls;
    return hli_no_memory(err);
}

struct hli_tls *hli_tls_ref(struct hli_tls *tls)
{
    return tls;
}

void hli_tls_unref(struct hli_tls *tls)
{
    (void)tls;
}

void hli_tls_put(struct hli_tls *tls, const char *bytes, size_t length)
{
    (void)tls, (void)bytes, (void)length;
}

enum hli_tls_step hli_tls_shake(struct hli_tls *tls)
{
    (void)tls;
    return HLI_TLS_FAILED;
}

int hli_tls_read(struct hli_tls *tls, char *text, size_t size)
{
    (void)tls, (void)text, (void)size;
    return -1;
}

bool hli_tls_write(struct hli_tls *tls, const char *text, size_t length)
{
    (void)tls, (void)text, (void)length;
    return false;
}

size_t hli_tls_pending(const struct hli_tls *tls)
{
    (void)tls;
    return 0;
}

size_t hli_tls_take(struct hli_tls *tls, char *bytes, size_t size)
{
    (void)tls, (void)bytes, (void)size;
    return 0;
}

bool hli_tls_problem(struct hli_tls *tls, hl_error *ret_err)
{
    (void)tls, (void)ret_err;
    return false;
}
