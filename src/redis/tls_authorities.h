/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The authorities that may sign a server's certificate. A system knows some 140, of which a client
 * needs one, and OpenSSL takes 0.1 ms to decode one: so each is decoded when a chain leads to it.
 * Until then a file's certificates are kept as they are, with the hash of the subject; those of a
 * folder of hashed names are read when OpenSSL asks for the subject.
 */
#ifndef HLI_REDIS_TLS_AUTHORITIES_H
#define HLI_REDIS_TLS_AUTHORITIES_H

#include <openssl/types.h>
#include <stdbool.h>

struct hli_tls_authorities;

/* How OpenSSL asks; it must live as long as every context that has authorities. NULL when memory is
 * out. Free it by X509_LOOKUP_meth_free(). */
X509_LOOKUP_METHOD *hli_tls_authorities_method(void);

/* Of a context, which owns them. Folders: their paths, with ':' between them; NULL: none. NULL when
 * memory is out. One thread at a time verifies by them, as below. */
struct hli_tls_authorities *hli_tls_authorities_new(SSL_CTX *context, X509_LOOKUP_METHOD *method,
                                                    const char *folders);

/* False when the file cannot be read, or has no certificate; OpenSSL's queue of errors says why. */
bool hli_tls_authorities_read(struct hli_tls_authorities *authorities, const char *file);

/* Has a file of a folder changed that was asked for, or come, or gone? */
bool hli_tls_authorities_have_changed(const struct hli_tls_authorities *authorities);

#endif
