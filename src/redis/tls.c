/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * TLS by OpenSSL, between two memory BIOs.
 *
 * Each failure becomes one sentence that says what to do. The certificate's faults are put into
 * words while OpenSSL verifies it (tls_on_verified), because only then is the certificate at hand.
 */
#include "redis/tls.h"

#include "base/check.h"
#include "base/error.h"
#include "base/ref.h"
#include "base/thread.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TLS_NAMES = 100, TLS_REASON = 160 };

struct hli_tls_files {
    SSL_CTX *context;
    char *server_name; /* NULL: the host's */
};

struct hli_tls {
    struct hli_ref ref;
    bool has_certificate; /* immutable: of the client */
    char host[256];       /* immutable: the name that the server's certificate must have */
    atomic_size_t pending;

    hli_mutex mutex; /* guards all below */
    SSL *ssl;
    BIO *in, *out;  /* owned by ssl */
    bool is_shaken; /* the handshake is over */
    bool has_failed;
    char reason[TLS_REASON];
};

/* ---- the files ---- */

/* Before any other use of OpenSSL: else a program that ends while our threads run would have
 * OpenSSL freed under them. */
static void tls_init_library(void)
{
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ERR_clear_error();
}

/* OpenSSL does not note all cases. */
static bool tls_lacks_memory(void)
{
    const unsigned long first = ERR_peek_error(), last = ERR_peek_last_error();

    return first == 0 || ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE ||
           ERR_GET_REASON(last) == ERR_R_MALLOC_FAILURE ||
           (ERR_SYSTEM_ERROR(first) && ERR_GET_REASON(first) == ENOMEM);
}

/* The first reason in OpenSSL's queue, in its own words. */
static const char *tls_library_reason(void)
{
    unsigned long problem = ERR_peek_error();
    const char *reason = ERR_reason_error_string(problem);

    if (tls_lacks_memory())
        return "out of memory";
    return reason ? reason : "unknown reason";
}

static int tls_file_fail(hl_error *err, const char *option, const char *path, const char *reason)
{
    return hli_fail(err, HL_EINVAL, "TLS: %s '%s': %s", option, path, reason);
}

/* A file that is not there, or that has no PEM in it. */
static int tls_file_unread(hl_error *err, const char *option, const char *path)
{
    unsigned long problem = ERR_peek_error();
    char reason[96];

    if (tls_lacks_memory())
        return hli_no_memory(err);
    if (ERR_SYSTEM_ERROR(problem))
        hli_error_reason(reason, sizeof(reason), ERR_GET_REASON(problem));
    else if (ERR_GET_LIB(problem) == ERR_LIB_PEM && ERR_GET_REASON(problem) == PEM_R_NO_START_LINE)
        snprintf(reason, sizeof(reason), "it has no such thing in PEM");
    else
        snprintf(reason, sizeof(reason), "%s", tls_library_reason());
    return tls_file_fail(err, option, path, reason);
}

static int tls_read_authorities(SSL_CTX *context, const hl_client_options *options, hl_error *err)
{
    const char *file = options->tls_ca_file, *folder = options->tls_ca_dir;

    if (file && !SSL_CTX_load_verify_file(context, file))
        return tls_file_unread(err, "tls_ca_file", file);
    if (folder && !SSL_CTX_load_verify_dir(context, folder))
        return tls_file_unread(err, "tls_ca_dir", folder);
    if (!file && !folder && !SSL_CTX_set_default_verify_paths(context))
        return hli_no_memory(err); /* it only notes where they are */
    return 0;
}

/* Instead of a question at the terminal. */
static int tls_no_passphrase(char *text, int size, int is_written, void *arg)
{
    bool *ret_is_asked = arg;

    (void)text, (void)size, (void)is_written;
    *ret_is_asked = true;
    return -1;
}

static int tls_read_key(SSL_CTX *context, const char *path, hl_error *err)
{
    bool is_encrypted = false;

    SSL_CTX_set_default_passwd_cb(context, tls_no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, &is_encrypted);
    int ok = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (is_encrypted)
        return tls_file_fail(err, "tls_key_file", path, "the key is encrypted: store it decrypted");
    if (ok)
        return 0;
    if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH)
        return tls_file_fail(err, "tls_key_file", path,
                             "it is not the key of the certificate in tls_cert_file");
    return tls_file_unread(err, "tls_key_file", path);
}

static int tls_read_own(SSL_CTX *context, const hl_client_options *options, hl_error *err)
{
    const char *certificate = options->tls_cert_file, *key = options->tls_key_file;

    if (!certificate && !key)
        return 0;
    if (!certificate || !key)
        return hli_fail(err, HL_EINVAL, "TLS: %s is set without %s",
                        key ? "tls_key_file" : "tls_cert_file",
                        key ? "tls_cert_file" : "tls_key_file");
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return tls_file_unread(err, "tls_cert_file", certificate);
    return tls_read_key(context, key, err);
}

static int tls_on_verified(int is_good, X509_STORE_CTX *chain);

static int tls_read_context(struct hli_tls_files *files, const hl_client_options *options,
                            hl_error *err)
{
    bool verifies = !(options->flags & HL_CLIENT_TLS_UNVERIFIED);

    files->context = SSL_CTX_new(TLS_client_method());
    files->server_name = options->tls_server_name ? strdup(options->tls_server_name) : NULL;
    if (!files->context || (options->tls_server_name && !files->server_name))
        return hli_no_memory(err);
    SSL_CTX_set_min_proto_version(files->context, TLS1_2_VERSION);
    SSL_CTX_set_options(files->context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(files->context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       verifies ? tls_on_verified : NULL);
    int rc = verifies ? tls_read_authorities(files->context, options, err) : 0;
    return rc < 0 ? rc : tls_read_own(files->context, options, err);
}

int hli_tls_read_files(const hl_client_options *options, struct hli_tls_files **ret_files,
                       hl_error *err)
{
    tls_init_library();
    struct hli_tls_files *files = calloc(1, sizeof(*files));
    int rc = files ? tls_read_context(files, options, err) : hli_no_memory(err);

    ERR_clear_error(); /* the thread may be the caller's */
    if (rc < 0)
        hli_tls_free_files(files);
    else
        *ret_files = files;
    return rc;
}

void hli_tls_free_files(struct hli_tls_files *files)
{
    if (!files)
        return;
    SSL_CTX_free(files->context);
    free(files->server_name);
    free(files);
}

/* ---- a connection ---- */

/* An address is compared with the certificate's addresses, and is no server name (RFC 6066, 3). */
static bool tls_expect_host(struct hli_tls *tls)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, tls->host))
        return true;
    SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(tls->ssl, tls->host) && SSL_set_tlsext_host_name(tls->ssl, tls->host);
}

static bool tls_open(struct hli_tls *tls, const struct hli_tls_files *files)
{
    tls->ssl = SSL_new(files->context);
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
    SSL_set_app_data(tls->ssl, tls);
    return tls_expect_host(tls);
}

struct hli_tls *hli_tls_new(const struct hli_tls_files *files, const char *host)
{
    struct hli_tls *tls = calloc(1, sizeof(*tls));

    if (!tls)
        return NULL;
    hli_ref_init(&tls->ref);
    hli_mutex_init(&tls->mutex);
    atomic_init(&tls->pending, 0);
    tls->has_certificate = SSL_CTX_get0_certificate(files->context) != NULL;
    snprintf(tls->host, sizeof(tls->host), "%s", files->server_name ? files->server_name : host);
    if (tls_open(tls, files))
        return tls;
    hli_tls_unref(tls);
    return NULL;
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
    if (BIO_write(tls->in, bytes, (int)length) != (int)length) {
        tls->has_failed = true;
        snprintf(tls->reason, sizeof(tls->reason), "out of memory");
    }
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

/* ---- why it failed ---- */

static void tls_reason(struct hli_tls *tls, const char *reason)
{
    if (!tls->reason[0])
        snprintf(tls->reason, sizeof(tls->reason), "%s", reason);
}

static const char *tls_date(const ASN1_TIME *time, char text[16])
{
    struct tm tm;

    if (!ASN1_TIME_to_tm(time, &tm) || !strftime(text, 16, "%Y-%m-%d", &tm))
        return "?";
    return text;
}

/* One name of a certificate: a host's, or an address. */
static void tls_write_name(const GENERAL_NAME *name, char *text, size_t size)
{
    const unsigned char *at = NULL;
    int length = 0;

    if (name->type == GEN_DNS || name->type == GEN_IPADD) {
        at = ASN1_STRING_get0_data(name->d.ip);
        length = ASN1_STRING_length(name->d.ip);
    }
    if (name->type == GEN_IPADD && length == 4)
        snprintf(text, size, "%u.%u.%u.%u", at[0], at[1], at[2], at[3]);
    else if (name->type == GEN_IPADD)
        for (int i = 0; i + 1 < length && size > 5; i += 2, text += strlen(text), size -= 5)
            snprintf(text, size, "%s%x", i > 0 ? ":" : "", at[i] << 8 | at[i + 1]);
    else
        hli_error_escape(text, size, at, (size_t)length);
}

/* "redis.example, 10.0.0.3" */
static void tls_write_names(const X509 *certificate, char text[TLS_NAMES])
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t used = 0;

    snprintf(text, TLS_NAMES, "no host");
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && used + 5 < TLS_NAMES; i++) {
        if (i > 0)
            used += (size_t)snprintf(text + used, TLS_NAMES - used, ", ");
        tls_write_name(sk_GENERAL_NAME_value(names, i), text + used, TLS_NAMES - used);
        used += strlen(text + used);
    }
    GENERAL_NAMES_free(names);
}

static void tls_explain_host(struct hli_tls *tls, const X509 *certificate)
{
    char names[TLS_NAMES], text[TLS_REASON];

    tls_write_names(certificate, names);
    snprintf(text, sizeof(text), "the server's certificate is for %.90s, not for %s", names,
             tls->host);
    tls_reason(tls, text);
}

static void tls_explain_issuer(struct hli_tls *tls, const X509 *certificate)
{
    char issuer[TLS_NAMES] = "?", escaped[TLS_NAMES], text[TLS_REASON];

    X509_NAME_oneline(X509_get_issuer_name(certificate), issuer, sizeof(issuer));
    snprintf(text, sizeof(text),
             "no known authority issued the server's certificate (%.60s did); "
             "set tls_ca_file",
             hli_error_escape(escaped, sizeof(escaped), issuer, strlen(issuer)));
    tls_reason(tls, text);
}

static void tls_explain_certificate(struct hli_tls *tls, int problem, const X509 *certificate)
{
    char date[16], text[TLS_REASON];

    switch (problem) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        tls_explain_host(tls, certificate);
        return;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        tls_explain_issuer(tls, certificate);
        return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        snprintf(text, sizeof(text), "the server's certificate has expired (on %s): renew it",
                 tls_date(X509_get0_notAfter(certificate), date));
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        snprintf(text, sizeof(text),
                 "the server's certificate is valid from %s only: compare the clocks",
                 tls_date(X509_get0_notBefore(certificate), date));
        break;
    default:
        snprintf(text, sizeof(text), "the server's certificate: %s",
                 X509_verify_cert_error_string(problem));
    }
    tls_reason(tls, text);
}

static int tls_on_verified(int is_good, X509_STORE_CTX *chain)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());

    if (!is_good)
        tls_explain_certificate(SSL_get_app_data(ssl), X509_STORE_CTX_get_error(chain),
                                X509_STORE_CTX_get_current_cert(chain));
    return is_good;
}

/* The server has refused the client: for want of a certificate, or because of it. */
static bool tls_explain_alert(struct hli_tls *tls, int reason)
{
    switch (reason) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        if (tls->is_shaken)
            return false; /* the server wanted to negotiate anew */
        break;
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: /* after the handshake, as we see it */
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        break;
    default:
        return false;
    }
    char text[TLS_REASON];
    snprintf(text, sizeof(text), "the server refuses the certificate in tls_cert_file (%s)",
             tls_library_reason());
    tls_reason(tls, tls->has_certificate
                        ? text
                        : "the server wants a certificate of the client: set tls_cert_file and "
                          "tls_key_file");
    return true;
}

static void tls_explain(struct hli_tls *tls)
{
    int reason = ERR_GET_REASON(ERR_peek_error());

    tls->has_failed = true;
    if (tls_explain_alert(tls, reason))
        return;
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
        tls_reason(tls,
                   "the server does not speak it at this port: is it redis://, or another port?");
    else if (reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL)
        tls_reason(tls, "the server knows neither version 1.2 nor 1.3");
    else
        tls_reason(tls, tls_library_reason());
}

bool hli_tls_problem(struct hli_tls *tls, hl_error *ret_err)
{
    hli_mutex_lock(&tls->mutex);
    bool has_failed = tls->has_failed;
    if (has_failed)
        hli_fail(ret_err, HL_ECONN, "TLS: %s", tls->reason);
    hli_mutex_unlock(&tls->mutex);
    return has_failed;
}

/* ---- the work ---- */

/* After a call of OpenSSL that did not succeed: true if it failed for good. */
static bool tls_has_failed(struct hli_tls *tls, int rc)
{
    int error = SSL_get_error(tls->ssl, rc);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ||
        error == SSL_ERROR_ZERO_RETURN) /* the server says good-bye: the socket's end follows */
        return tls->has_failed;
    tls_explain(tls);
    return true;
}

enum hli_tls_step hli_tls_shake(struct hli_tls *tls)
{
    enum hli_tls_step step = HLI_TLS_DONE;

    tls_enter(tls);
    int rc = SSL_do_handshake(tls->ssl);
    if (rc != 1)
        step = tls_has_failed(tls, rc) ? HLI_TLS_FAILED : HLI_TLS_ON;
    tls->is_shaken = step == HLI_TLS_DONE;
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
