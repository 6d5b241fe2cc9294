/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Why TLS did not succeed, as one sentence that says what to do. These functions read OpenSSL's
 * queue of errors, which is one for each thread: they run on the thread whose call has failed.
 */
#ifndef HLI_REDIS_TLS_REASON_H
#define HLI_REDIS_TLS_REASON_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

enum { HLI_TLS_REASON = 160, HLI_TLS_HOST = 256 };

struct hli_tls_reason {        /* of one connection; guarded by its mutex */
    bool has_certificate;      /* immutable: of the client */
    char host[HLI_TLS_HOST];   /* immutable: the name that the server's certificate must have */
    bool is_shaken;            /* the handshake is over */
    char text[HLI_TLS_REASON]; /* "": it has not failed */
};

bool hli_tls_lacks_memory(void);

/* Why a file was not read: it is not there, or has no PEM in it. The text is for the result's use.
 */
const char *hli_tls_reason_of_file(char *text, size_t size);

/* Keeps the first text: what fails later is a consequence. */
void hli_tls_reason_set(struct hli_tls_reason *reason, const char *text);
/* Finds the text of an error of OpenSSL. */
void hli_tls_reason_find(struct hli_tls_reason *reason);
/* For SSL_CTX_set_verify(): the SSL's app data is the reason. */
int hli_tls_reason_on_verified(int is_good, X509_STORE_CTX *chain);

#endif
