/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Certificates by OpenSSL: keys on the curve P-256, which are made in a moment. */
#include "certificates.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <unistd.h>

#include "fatal.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

static FILE *certificate_file(const char *dir, const char *name, const char *suffix,
                              const char *mode)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s.%s", dir, name, suffix);
    FILE *file = fopen(path, mode);
    if (!file)
        fatal_errno("open %s", path);
    return file;
}

static void certificate_extend(X509 *x509, X509 *issuer, int nid, const char *text)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, text);
    must(extension && X509_add_ext(x509, extension, -1));
    X509_EXTENSION_free(extension);
}

/* The issuer's certificate and key; its own for an authority. */
static void certificate_sign(const char *dir, const struct certificate *what, X509 *x509,
                             EVP_PKEY *key)
{
    X509 *issuer = x509;
    EVP_PKEY *issuer_key = key;
    if (what->issuer) {
        FILE *file = certificate_file(dir, what->issuer, "pem", "re");
        issuer = PEM_read_X509(file, NULL, NULL, NULL);
        fclose(file);
        file = certificate_file(dir, what->issuer, "key", "re");
        issuer_key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
        fclose(file);
        must(issuer && issuer_key);
    }
    X509_set_issuer_name(x509, X509_get_subject_name(issuer));
    certificate_extend(x509, issuer, NID_basic_constraints,
                       what->issuer ? "CA:FALSE" : "critical,CA:TRUE");
    if (what->hosts)
        certificate_extend(x509, issuer, NID_subject_alt_name, what->hosts);
    must(X509_sign(x509, issuer_key, EVP_sha256()) > 0);
    if (what->issuer) {
        X509_free(issuer);
        EVP_PKEY_free(issuer_key);
    }
}

static X509 *certificate_new(const struct certificate *what, EVP_PKEY *key)
{
    unsigned char serial[8];
    int ends = what->ends_in_seconds ? what->ends_in_seconds : (what->begins_in_days + 1) * DAY_S;
    X509 *x509 = X509_new();
    BIGNUM *number = NULL;

    must(x509 && RAND_bytes(serial, sizeof serial) == 1);
    serial[0] &= 0x7f;
    number = BN_bin2bn(serial, sizeof serial, NULL);
    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509));
    BN_free(number);
    X509_set_version(x509, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x509), what->begins_in_days * (long)DAY_S - HOUR_S);
    X509_gmtime_adj(X509_getm_notAfter(x509), ends);
    X509_set_pubkey(x509, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                               (const unsigned char *)what->name, -1, -1, 0);
    return x509;
}

void certificate_make(const char *dir, const struct certificate *what)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(key);
    X509 *x509 = certificate_new(what, key);
    certificate_sign(dir, what, x509, key);
    FILE *file = certificate_file(dir, what->name, "pem", "we");
    must(PEM_write_X509(file, x509) == 1 && fclose(file) == 0);
    file = certificate_file(dir, what->name, "key", "we");
    must(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static void certificate_share_file(const char *from_dir, const char *dir, const char *name,
                                   const char *suffix)
{
    char from[160], path[160];
    snprintf(from, sizeof from, "%s/%s.%s", from_dir, name, suffix);
    snprintf(path, sizeof path, "%s/%s.%s", dir, name, suffix);
    if (link(from, path) != 0)
        fatal_errno("link %s to %s", from, path);
}

void certificate_share(const char *from_dir, const char *dir, const char *name)
{
    certificate_share_file(from_dir, dir, name, "pem");
    certificate_share_file(from_dir, dir, name, "key");
}
