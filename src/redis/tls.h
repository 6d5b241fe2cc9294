/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * TLS of one connection, by OpenSSL. It works in memory: received bytes are put in, and bytes to be
 * sent are taken out. The socket stays with the files that read and write it, so that one thread
 * can write while another one reads. A mutex guards OpenSSL's object; no thread holds it during a
 * system call.
 */
#ifndef HLI_REDIS_TLS_H
#define HLI_REDIS_TLS_H

#include <hirelock/client.h>

/* What the files have that the options name: of a client. It is not read for each connection. */
struct hli_tls_context;
struct hli_tls;

/* Reads the files; the options are borrowed. Errors: HL_EINVAL with the reason; HL_ENOTSUP in a
 * build without TLS; HL_ENOMEM. */
int hli_tls_context_new(const hl_client_options *options, struct hli_tls_context **ret_context,
                        hl_error *err);
void hli_tls_context_free(struct hli_tls_context *context); /* NULL is fine */

/* TLS of a connection; the server's certificate must be for this host, a name or a numeric address.
 * Reads the files again if they have changed, because certificates are renewed while a program
 * runs. Loop thread. Errors as above. */
int hli_tls_new(struct hli_tls_context *context, const char *host, struct hli_tls **ret_tls,
                hl_error *err);
struct hli_tls *hli_tls_ref(struct hli_tls *tls); /* NULL is fine, for both */
void hli_tls_unref(struct hli_tls *tls);

/* Any thread, as all below, unless it says otherwise. Takes bytes that the socket gave. */
void hli_tls_put(struct hli_tls *tls, const char *bytes, size_t length);

/* Goes on with the handshake. HLI_TLS_ON: it needs more bytes of the server. One thread. */
enum hli_tls_step { HLI_TLS_ON, HLI_TLS_DONE, HLI_TLS_FAILED };
enum hli_tls_step hli_tls_shake(struct hli_tls *tls);

/* Decrypts. Returns the number of bytes; 0 when more must be put in first; -1 when TLS failed. One
 * thread at a time. */
int hli_tls_read(struct hli_tls *tls, char *text, size_t size);

/* Encrypts. False when memory is out, or TLS failed. */
bool hli_tls_write(struct hli_tls *tls, const char *text, size_t length);

/* How many bytes are to be sent; and the next of them, which are taken out. One thread at a time
 * takes them, and sends them in this order. */
size_t hli_tls_pending(const struct hli_tls *tls);
size_t hli_tls_take(struct hli_tls *tls, char *bytes, size_t size);

/* Why TLS failed: "TLS: the server's certificate has expired (on 2026-01-31)". Returns false when
 * it has not failed. */
bool hli_tls_problem(struct hli_tls *tls, hl_error *ret_err);

#endif
