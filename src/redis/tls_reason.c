/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL's errors, in words.
 *
 * A certificate's faults are put into words while OpenSSL verifies it
 * (hli_tls_reason_on_verified), because only then is the certificate at hand.
 */
#include "redis/tls_reason.h"

#include "base/error.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REASON_NAMES = 100 };

/* OpenSSL does not note all cases. */
bool hli_tls_lacks_memory(void)
{
    const unsigned long first = ERR_peek_error(), last = ERR_peek_last_error();

    return first == 0 || ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE ||
           ERR_GET_REASON(last) == ERR_R_MALLOC_FAILURE ||
           (ERR_SYSTEM_ERROR(first) && ERR_GET_REASON(first) == ENOMEM);
}

/* The first reason in OpenSSL's queue, in its own words. */
static const char *reason_of_library(void)
{
    unsigned long problem = ERR_peek_error();
    const char *reason = ERR_reason_error_string(problem);

    if (hli_tls_lacks_memory())
        return "out of memory";
    return reason ? reason : "unknown reason";
}

const char *hli_tls_reason_of_file(char *text, size_t size)
{
    unsigned long problem = ERR_peek_error();

    if (ERR_SYSTEM_ERROR(problem))
        return hli_error_reason(text, size, ERR_GET_REASON(problem));
    if (ERR_GET_LIB(problem) == ERR_LIB_PEM && ERR_GET_REASON(problem) == PEM_R_NO_START_LINE)
        return "it has no such thing in PEM";
    return reason_of_library();
}

void hli_tls_reason_set(struct hli_tls_reason *reason, const char *text)
{
    if (!reason->text[0])
        snprintf(reason->text, sizeof(reason->text), "%s", text);
}

/* ---- the server's certificate ---- */

static const char *reason_date(const ASN1_TIME *time, char text[16])
{
    struct tm tm;

    if (!ASN1_TIME_to_tm(time, &tm) || !strftime(text, 16, "%Y-%m-%d", &tm))
        return "?";
    return text;
}

/* One name of a certificate: a host's, or an address. */
static void reason_write_name(const GENERAL_NAME *name, char *text, size_t size)
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
static void reason_write_names(const X509 *certificate, char text[REASON_NAMES])
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    size_t used = 0;

    snprintf(text, REASON_NAMES, "no host");
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && used + 5 < REASON_NAMES; i++) {
        if (i > 0)
            used += (size_t)snprintf(text + used, REASON_NAMES - used, ", ");
        reason_write_name(sk_GENERAL_NAME_value(names, i), text + used, REASON_NAMES - used);
        used += strlen(text + used);
    }
    GENERAL_NAMES_free(names);
}

static void reason_explain_host(struct hli_tls_reason *reason, const X509 *certificate)
{
    char names[REASON_NAMES], text[HLI_TLS_REASON];

    reason_write_names(certificate, names);
    snprintf(text, sizeof(text), "the server's certificate is for %.90s, not for %s", names,
             reason->host);
    hli_tls_reason_set(reason, text);
}

static void reason_explain_issuer(struct hli_tls_reason *reason, const X509 *certificate)
{
    char issuer[REASON_NAMES] = "?", escaped[REASON_NAMES], text[HLI_TLS_REASON];

    X509_NAME_oneline(X509_get_issuer_name(certificate), issuer, sizeof(issuer));
    snprintf(text, sizeof(text),
             "no known authority issued the server's certificate (%.60s did); "
             "set tls_ca_file",
             hli_error_escape(escaped, sizeof(escaped), issuer, strlen(issuer)));
    hli_tls_reason_set(reason, text);
}

static void reason_explain_certificate(struct hli_tls_reason *reason, int problem,
                                       const X509 *certificate)
{
    char date[16], text[HLI_TLS_REASON];

    switch (problem) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        reason_explain_host(reason, certificate);
        return;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        reason_explain_issuer(reason, certificate);
        return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        snprintf(text, sizeof(text), "the server's certificate has expired (on %s): renew it",
                 reason_date(X509_get0_notAfter(certificate), date));
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        snprintf(text, sizeof(text),
                 "the server's certificate is valid from %s only: compare the clocks",
                 reason_date(X509_get0_notBefore(certificate), date));
        break;
    default:
        snprintf(text, sizeof(text), "the server's certificate: %s",
                 X509_verify_cert_error_string(problem));
    }
    hli_tls_reason_set(reason, text);
}

int hli_tls_reason_on_verified(int is_good, X509_STORE_CTX *chain)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());

    if (!is_good)
        reason_explain_certificate(SSL_get_app_data(ssl), X509_STORE_CTX_get_error(chain),
                                   X509_STORE_CTX_get_current_cert(chain));
    return is_good;
}

/* ---- the rest ---- */

/* The server has refused the client: for want of a certificate, or because of it. */
static bool reason_explain_alert(struct hli_tls_reason *reason, int problem)
{
    switch (problem) {
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        if (reason->is_shaken)
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
    char text[HLI_TLS_REASON];
    snprintf(text, sizeof(text), "the server refuses the certificate in tls_cert_file (%s)",
             reason_of_library());
    hli_tls_reason_set(reason,
                       reason->has_certificate
                           ? text
                           : "the server wants a certificate of the client: set tls_cert_file and "
                             "tls_key_file");
    return true;
}

void hli_tls_reason_find(struct hli_tls_reason *reason)
{
    int problem = ERR_GET_REASON(ERR_peek_error());

    if (reason_explain_alert(reason, problem))
        return;
    if (problem == SSL_R_WRONG_VERSION_NUMBER || problem == SSL_R_PACKET_LENGTH_TOO_LONG)
        hli_tls_reason_set(
            reason, "the server does not speak it at this port: is it redis://, or another port?");
    else if (problem == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || problem == SSL_R_UNSUPPORTED_PROTOCOL)
        hli_tls_reason_set(reason, "the server knows neither version 1.2 nor 1.3");
    else
        hli_tls_reason_set(reason, reason_of_library());
}
