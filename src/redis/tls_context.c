/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The files of TLS: read into one context of OpenSSL, and read anew when one of them is not the
 * file any more that was read.
 */
#include "redis/tls_context.h"

#include "base/error.h"
#include "redis/file_stamp.h"
#include "redis/tls.h"
#include "redis/tls_authorities.h"
#include "redis/tls_reason.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

enum { CONTEXT_FILES = 3 };

struct hli_tls_context { /* loop thread, after it was made */
    const hl_client_options *options;
    X509_LOOKUP_METHOD *asked;               /* how OpenSSL asks for an authority */
    SSL_CTX *made;                           /* NULL: the files are to be read */
    struct hli_tls_authorities *authorities; /* of `made`; NULL: nothing is verified */
    struct hli_file_stamp stamp[CONTEXT_FILES];
};

/* Before any other use of OpenSSL: else a program that ends while our threads run would have
 * OpenSSL freed under them. */
static void context_init_library(void)
{
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ERR_clear_error();
}

static int context_file_fail(hl_error *err, const char *option, const char *path,
                             const char *reason)
{
    return hli_fail(err, HL_EINVAL, "TLS: %s '%s': %s", option, path, reason);
}

static int context_file_unread(hl_error *err, const char *option, const char *path)
{
    char text[96];

    if (hli_tls_lacks_memory())
        return hli_no_memory(err);
    return context_file_fail(err, option, path, hli_tls_reason_of_file(text, sizeof(text)));
}

/* The system's authorities are a file or a folder, or both, and the environment may name them. */
static const char *context_default(const char *variable, const char *path)
{
    const char *named = secure_getenv(variable);

    return named ? named : path;
}

static bool context_asks_system(const hl_client_options *options)
{
    return !options->tls_ca_file && !options->tls_ca_dir;
}

static const char *context_authorities_file(const hl_client_options *options)
{
    return context_asks_system(options)
               ? context_default(X509_get_default_cert_file_env(), X509_get_default_cert_file())
               : options->tls_ca_file;
}

static const char *context_authorities_folders(const hl_client_options *options)
{
    return context_asks_system(options)
               ? context_default(X509_get_default_cert_dir_env(), X509_get_default_cert_dir())
               : options->tls_ca_dir;
}

/* The system may have no such file. */
static int context_read_authorities(struct hli_tls_context *context, hl_error *err)
{
    const char *file = context_authorities_file(context->options);

    context->authorities = hli_tls_authorities_new(context->made, context->asked,
                                                   context_authorities_folders(context->options));
    if (!context->authorities)
        return hli_no_memory(err);
    if (!file || hli_tls_authorities_read(context->authorities, file))
        return 0;
    if (context->options->tls_ca_file)
        return context_file_unread(err, "tls_ca_file", file);
    return hli_tls_lacks_memory() ? hli_no_memory(err) : 0;
}

/* Instead of a question at the terminal. */
static int context_no_passphrase(char *text, int size, int is_written, void *arg)
{
    bool *ret_is_asked = arg;

    (void)text, (void)size, (void)is_written;
    *ret_is_asked = true;
    return -1;
}

static int context_read_key(SSL_CTX *context, const char *path, hl_error *err)
{
    bool is_encrypted = false;

    SSL_CTX_set_default_passwd_cb(context, context_no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(context, &is_encrypted);
    int ok = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (is_encrypted)
        return context_file_fail(err, "tls_key_file", path,
                                 "the key is encrypted: store it decrypted");
    if (ok)
        return 0;
    if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH)
        return context_file_fail(err, "tls_key_file", path,
                                 "it is not the key of the certificate in tls_cert_file");
    return context_file_unread(err, "tls_key_file", path);
}

static int context_read_own(SSL_CTX *context, const hl_client_options *options, hl_error *err)
{
    const char *certificate = options->tls_cert_file, *key = options->tls_key_file;

    if (!certificate && !key)
        return 0;
    if (!certificate || !key)
        return hli_fail(err, HL_EINVAL, "TLS: %s is set without %s",
                        key ? "tls_key_file" : "tls_cert_file",
                        key ? "tls_cert_file" : "tls_key_file");
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return context_file_unread(err, "tls_cert_file", certificate);
    return context_read_key(context, key, err);
}

static bool context_verifies(const struct hli_tls_context *context)
{
    return !(context->options->flags & HL_CLIENT_TLS_UNVERIFIED);
}

static int context_fill(struct hli_tls_context *context, hl_error *err)
{
    bool verifies = context_verifies(context);
    SSL_CTX *made = context->made;

    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(made, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       verifies ? hli_tls_reason_on_verified : NULL);
    int rc = verifies ? context_read_authorities(context, err) : 0;
    return rc < 0 ? rc : context_read_own(made, context->options, err);
}

/* Of a folder the authorities know which files matter. */
static void context_list_files(const struct hli_tls_context *context,
                               const char *path[CONTEXT_FILES])
{
    path[0] = context_verifies(context) ? context_authorities_file(context->options) : NULL;
    path[1] = context->options->tls_cert_file;
    path[2] = context->options->tls_key_file;
}

static bool context_has_changed(const struct hli_tls_context *context)
{
    const char *path[CONTEXT_FILES];

    context_list_files(context, path);
    for (int i = 0; i < CONTEXT_FILES; i++)
        if (hli_file_stamp_has_changed(&context->stamp[i], path[i]))
            return true;
    return context->authorities && hli_tls_authorities_have_changed(context->authorities);
}

/* Connections that stand have references of their own. */
static void context_drop(struct hli_tls_context *context)
{
    SSL_CTX_free(context->made);
    context->made = NULL;
    context->authorities = NULL;
}

/* The stamps are taken first: what changes while it is read is read again at the next look. */
static int context_read(struct hli_tls_context *context, hl_error *err)
{
    const char *path[CONTEXT_FILES];

    context_list_files(context, path);
    for (int i = 0; i < CONTEXT_FILES; i++)
        hli_file_stamp_take(path[i], &context->stamp[i]);
    context->made = SSL_CTX_new(TLS_client_method());
    int rc = context->made ? context_fill(context, err) : hli_no_memory(err);

    ERR_clear_error(); /* the thread may be the caller's */
    if (rc < 0)
        context_drop(context);
    return rc;
}

/* Files that cannot be read are no reason to go on with what they were. */
int hli_tls_context_look(struct hli_tls_context *context, SSL_CTX **ret_made, hl_error *err)
{
    int rc = 0;

    if (!context->made || context_has_changed(context)) {
        context_drop(context);
        rc = context_read(context, err);
    }
    if (rc == 0)
        *ret_made = context->made;
    return rc;
}

int hli_tls_context_new(const hl_client_options *options, struct hli_tls_context **ret_context,
                        hl_error *err)
{
    struct hli_tls_context *context = calloc(1, sizeof(*context));
    SSL_CTX *made = NULL;

    if (!context)
        return hli_no_memory(err);
    context->options = options;
    context_init_library();
    context->asked = hli_tls_authorities_method();
    int rc = context->asked ? hli_tls_context_look(context, &made, err) : hli_no_memory(err);
    if (rc < 0)
        hli_tls_context_free(context);
    else
        *ret_context = context;
    return rc;
}

void hli_tls_context_free(struct hli_tls_context *context)
{
    if (!context)
        return;
    context_drop(context);
    X509_LOOKUP_meth_free(context->asked);
    free(context);
}
