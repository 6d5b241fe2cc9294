/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The files of TLS: read into one context of OpenSSL, and read anew when one of them is not the
 * file any more that was read.
 */
#include "redis/tls_context.h"

#include "base/error.h"
#include "redis/tls.h"
#include "redis/tls_reason.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CONTEXT_FILES = 4 };

/* What tells a file from the one that takes its place. All zero: there is none. */
struct context_stamp {
    dev_t device;
    ino_t number;
    off_t size;
    struct timespec modified, changed;
};

struct hli_tls_context { /* loop thread, after it was made */
    const hl_client_options *options;
    SSL_CTX *made; /* NULL: the files are to be read */
    struct context_stamp stamp[CONTEXT_FILES];
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

static int context_read_authorities(SSL_CTX *context, const hl_client_options *options,
                                    hl_error *err)
{
    const char *file = options->tls_ca_file, *folder = options->tls_ca_dir;

    if (file && !SSL_CTX_load_verify_file(context, file))
        return context_file_unread(err, "tls_ca_file", file);
    if (folder && !SSL_CTX_load_verify_dir(context, folder))
        return context_file_unread(err, "tls_ca_dir", folder);
    if (!file && !folder && !SSL_CTX_set_default_verify_paths(context))
        return hli_no_memory(err); /* it only notes where they are */
    return 0;
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

static int context_fill(SSL_CTX *context, const hl_client_options *options, hl_error *err)
{
    bool verifies = !(options->flags & HL_CLIENT_TLS_UNVERIFIED);

    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       verifies ? hli_tls_reason_on_verified : NULL);
    int rc = verifies ? context_read_authorities(context, options, err) : 0;
    return rc < 0 ? rc : context_read_own(context, options, err);
}

/* The system's authorities are a file or a folder, or both, and the environment may name them. */
static const char *context_default(const char *variable, const char *path)
{
    const char *named = secure_getenv(variable);

    return named ? named : path;
}

/* Of a folder of authorities it is the folder itself that tells: names come, go or are replaced. */
static void context_list_files(const hl_client_options *options, const char *path[CONTEXT_FILES])
{
    bool verifies = !(options->flags & HL_CLIENT_TLS_UNVERIFIED);
    bool has_own = options->tls_ca_file || options->tls_ca_dir;

    path[0] = options->tls_ca_file;
    path[1] = options->tls_ca_dir;
    path[2] = options->tls_cert_file;
    path[3] = options->tls_key_file;
    if (verifies && !has_own) {
        path[0] = context_default(X509_get_default_cert_file_env(), X509_get_default_cert_file());
        path[1] = context_default(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
    }
}

static void context_take_stamps(const hl_client_options *options,
                                struct context_stamp stamp[CONTEXT_FILES])
{
    const char *path[CONTEXT_FILES];
    struct stat found;

    context_list_files(options, path);
    memset(stamp, 0, sizeof(*stamp) * CONTEXT_FILES); /* with the bytes between the fields */
    for (int i = 0; i < CONTEXT_FILES; i++) {
        if (!path[i] || stat(path[i], &found) < 0)
            continue;
        stamp[i].device = found.st_dev;
        stamp[i].number = found.st_ino;
        stamp[i].size = found.st_size;
        stamp[i].modified = found.st_mtim;
        stamp[i].changed = found.st_ctim;
    }
}

static int context_read(const hl_client_options *options, SSL_CTX **ret_made, hl_error *err)
{
    context_init_library();
    SSL_CTX *made = SSL_CTX_new(TLS_client_method());
    int rc = made ? context_fill(made, options, err) : hli_no_memory(err);

    ERR_clear_error(); /* the thread may be the caller's */
    if (rc < 0)
        SSL_CTX_free(made);
    else
        *ret_made = made;
    return rc;
}

/* The stamps are taken first: what changes while it is read is read again at the next look. Files
 * that cannot be read are no reason to go on with what they were. */
int hli_tls_context_look(struct hli_tls_context *context, SSL_CTX **ret_made, hl_error *err)
{
    struct context_stamp stamp[CONTEXT_FILES];
    int rc = 0;

    context_take_stamps(context->options, stamp);
    if (!context->made || memcmp(stamp, context->stamp, sizeof(stamp)) != 0) {
        SSL_CTX_free(context->made); /* connections that stand have references of their own */
        context->made = NULL;
        rc = context_read(context->options, &context->made, err);
        memcpy(context->stamp, stamp, sizeof(stamp));
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
    int rc = hli_tls_context_look(context, &made, err);
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
    SSL_CTX_free(context->made);
    free(context);
}
