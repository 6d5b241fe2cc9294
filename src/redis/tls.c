/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * TLS by OpenSSL, between two memory BIOs. Why something failed is put into words in tls_reason.c.
 */
#include "redis/tls.h"

#include "base/check.h"
#include "base/error.h"
#include "base/ref.h"
#include "base/thread.h"
#include "redis/tls_context.h"
#include "redis/tls_reason.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct hli_tls {
    struct hli_ref ref;
    atomic_size_t pending;

    hli_mutex mutex; /* guards all below */
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    struct hli_tls_reason reason;
};

/* An address is compared with the certificate's addresses, and is no server name (RFC 6066, 3). */
static bool tls_expect_host(SSL *ssl, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host))
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

static bool tls_open(struct hli_tls *tls, SSL_CTX *context)
{
    tls->ssl = SSL_new(context);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        return false;
    }
    BIO_set_mem_eof_return(tls->in, -1); /* an empty one means "later", not the end */
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    SSL_set_app_data(tls->ssl, &tls->reason);
    return tls_expect_host(tls->ssl, tls->reason.host);
}

/* A dot at the end says that the name is whole, and is no part of a certificate's names or of SNI
 * (RFC 6066, 3). */
static void tls_name_host(const char *host, char name[HLI_TLS_HOST])
{
    size_t length = strlen(host);

    if (length > 1 && host[length - 1] == '.')
        length--;
    snprintf(name, HLI_TLS_HOST, "%.*s", (int)length, host);
}

static struct hli_tls *tls_new(SSL_CTX *context, const char *host)
{
    struct hli_tls *tls = calloc(1, sizeof(*tls));

    if (!tls)
        return NULL;
    hli_ref_init(&tls->ref);
    hli_mutex_init(&tls->mutex);
    atomic_init(&tls->pending, 0);
    tls->reason.has_certificate = SSL_CTX_get0_certificate(context) != NULL;
    tls_name_host(host, tls->reason.host);
    if (tls_open(tls, context))
        return tls;
    hli_tls_unref(tls);
    return NULL;
}

int hli_tls_new(struct hli_tls_context *context, const char *host, struct hli_tls **ret_tls,
                hl_error *err)
{
    SSL_CTX *made = NULL;

    int rc = hli_tls_context_look(context, &made, err);
    if (rc < 0)
        return rc;
    struct hli_tls *tls = tls_new(made, host);
    ERR_clear_error();
    if (!tls)
        return hli_no_memory(err);
    *ret_tls = tls;
    return 0;
}

struct hli_tls *hli_tls_ref(struct hli_tls *tls)
{
    if (tls)
        hli_ref_take(&tls->ref);
    return tls;
}

void hli_tls_unref(struct hli_tls *tls)
{
    if (!tls || !hli_ref_drop(&tls->ref))
        return;
    SSL_free(tls->ssl);
    hli_mutex_deinit(&tls->mutex);
    free(tls);
}

/* Every visit begins and ends so: with an empty queue of errors, which is one for each thread, and
 * with the number of bytes to be sent. */
static void tls_enter(struct hli_tls *tls)
{
    hli_mutex_lock(&tls->mutex);
    ERR_clear_error();
}

static void tls_leave(struct hli_tls *tls)
{
    atomic_store_explicit(&tls->pending, BIO_ctrl_pending(tls->out), memory_order_relaxed);
    ERR_clear_error();
    hli_mutex_unlock(&tls->mutex);
}

void hli_tls_put(struct hli_tls *tls, const char *bytes, size_t length)
{
    tls_enter(tls);
    if (BIO_write(tls->in, bytes, (int)length) != (int)length)
        hli_tls_reason_set(&tls->reason, "out of memory");
    tls_leave(tls);
}

size_t hli_tls_pending(const struct hli_tls *tls)
{
    return atomic_load_explicit(&tls->pending, memory_order_relaxed);
}

size_t hli_tls_take(struct hli_tls *tls, char *bytes, size_t size)
{
    tls_enter(tls);
    int taken = BIO_read(tls->out, bytes, (int)size);
    tls_leave(tls);
    return taken > 0 ? (size_t)taken : 0;
}

/* After a call of OpenSSL that did not succeed: true if it failed for good. */
static bool tls_has_failed(struct hli_tls *tls, int rc)
{
    int error = SSL_get_error(tls->ssl, rc);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ||
        error == SSL_ERROR_ZERO_RETURN) /* the server says good-bye: the socket's end follows */
        return tls->reason.text[0] != '\0';
    hli_tls_reason_find(&tls->reason);
    return true;
}

enum hli_tls_step hli_tls_shake(struct hli_tls *tls)
{
    enum hli_tls_step step = HLI_TLS_DONE;

    tls_enter(tls);
    int rc = SSL_do_handshake(tls->ssl);
    if (rc != 1)
        step = tls_has_failed(tls, rc) ? HLI_TLS_FAILED : HLI_TLS_ON;
    tls->reason.is_shaken = step == HLI_TLS_DONE;
    tls_leave(tls);
    return step;
}

int hli_tls_read(struct hli_tls *tls, char *text, size_t size)
{
    tls_enter(tls);
    int got = SSL_read(tls->ssl, text, (int)size);
    if (got <= 0)
        got = tls_has_failed(tls, got) ? -1 : 0;
    tls_leave(tls);
    return got;
}

/* A write into memory is whole, or fails. */
bool hli_tls_write(struct hli_tls *tls, const char *text, size_t length)
{
    tls_enter(tls);
    int rc = SSL_write(tls->ssl, text, (int)length);
    bool is_written = rc == (int)length;
    if (!is_written)
        tls_has_failed(tls, rc);
    tls_leave(tls);
    return is_written;
}

bool hli_tls_problem(struct hli_tls *tls, hl_error *ret_err)
{
    hli_mutex_lock(&tls->mutex);
    bool has_failed = tls->reason.text[0] != '\0';
    if (has_failed)
        hli_fail(ret_err, HL_ECONN, "TLS: %s", tls->reason.text);
    hli_mutex_unlock(&tls->mutex);
    return has_failed;
}
