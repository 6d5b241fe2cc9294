/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Authorities as an X509_LOOKUP: OpenSSL asks it for a subject that its store has not met yet.
 */
#include "redis/tls_authorities.h"

#include "redis/file_stamp.h"

#include <openssl/asn1.h>
#include <openssl/asn1err.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { AUTHORITY_VERSION = 0xa0 }; /* the first byte of a TBSCertificate's version */

/* One certificate; in the order in which they were read. */
struct authority {
    unsigned long subject;
    unsigned char *der; /* NULL: the store has it */
    long length;
};

/* A name in a folder, the last one of a subject without a file behind it. */
struct authorities_place {
    SLIST_ENTRY(authorities_place) link;
    unsigned long subject;
    struct hli_file_stamp stamp;
    char path[];
};

struct hli_tls_authorities {
    struct authority *list;
    size_t count, room;
    SLIST_HEAD(, authorities_place) places;
    char folders[]; /* immutable */
};

static void authorities_free(struct hli_tls_authorities *authorities)
{
    struct authorities_place *place;

    while ((place = SLIST_FIRST(&authorities->places))) {
        SLIST_REMOVE_HEAD(&authorities->places, link);
        free(place);
    }
    for (size_t i = 0; i < authorities->count; i++)
        OPENSSL_free(authorities->list[i].der);
    free(authorities->list);
    free(authorities);
}

/* ---- where a certificate has its subject (RFC 5280, 4.1) ---- */

/* Reads the head of the next value. False when it is none. */
static bool der_enter(const unsigned char **at, long *left, long *ret_length)
{
    const unsigned char *begin = *at;
    int tag = 0, class = 0;

    if (*left <= 0 || ASN1_get_object(at, ret_length, &tag, &class, *left) & 0x80)
        return false;
    *left -= *at - begin;
    return true;
}

static bool der_enter_sequence(const unsigned char **at, long *left)
{
    long length = 0;

    if (!der_enter(at, left, &length))
        return false;
    *left = length;
    return true;
}

static bool der_pass(const unsigned char **at, long *left)
{
    long length = 0;

    if (!der_enter(at, left, &length))
        return false;
    *at += length;
    *left -= length;
    return true;
}

/* It is behind the serial number, the algorithm, the issuer and the dates. */
static bool authority_find_subject(struct authority *authority)
{
    const unsigned char *at = authority->der;
    long left = authority->length;
    int ok = 0;

    if (!der_enter_sequence(&at, &left) || !der_enter_sequence(&at, &left))
        return false;
    if (left > 0 && *at == AUTHORITY_VERSION && !der_pass(&at, &left))
        return false;
    for (int i = 0; i < 4; i++)
        if (!der_pass(&at, &left))
            return false;
    X509_NAME *subject = d2i_X509_NAME(NULL, &at, left);
    if (!subject)
        return false;
    authority->subject = X509_NAME_hash_ex(subject, NULL, NULL, &ok);
    X509_NAME_free(subject);
    return ok;
}

/* ---- files ---- */

static bool authorities_grow(struct hli_tls_authorities *authorities)
{
    if (authorities->count < authorities->room)
        return true;
    size_t room = authorities->room * 2 + 2;
    struct authority *list = realloc(authorities->list, room * sizeof(*list));
    if (!list) {
        ERR_raise(ERR_LIB_USER, ERR_R_MALLOC_FAILURE);
        return false;
    }
    authorities->list = list;
    authorities->room = room;
    return true;
}

static bool is_certificate(const char *name)
{
    return strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0 ||
           strcmp(name, PEM_STRING_X509_TRUSTED) == 0;
}

/* Takes the bytes. */
static bool authorities_take(struct hli_tls_authorities *authorities, unsigned char *der,
                             long length)
{
    struct authority authority = {.der = der, .length = length};

    bool ok = authority_find_subject(&authority);
    if (!ok)
        ERR_raise(ERR_LIB_ASN1, ASN1_R_DECODE_ERROR); /* behind what the queue has already */
    if (!ok || !authorities_grow(authorities)) {
        OPENSSL_free(der);
        return false;
    }
    authorities->list[authorities->count++] = authority;
    return true;
}

/* What else is in the file is passed over: keys, lists of revoked certificates. */
static bool authorities_read_next(struct hli_tls_authorities *authorities, BIO *file)
{
    char *name = NULL, *header = NULL;
    unsigned char *der = NULL;
    long length = 0;

    if (!PEM_read_bio(file, &name, &header, &der, &length))
        return false;
    bool ok = true;
    if (is_certificate(name))
        ok = authorities_take(authorities, der, length);
    else
        OPENSSL_free(der);
    OPENSSL_free(name);
    OPENSSL_free(header);
    return ok;
}

/* That there is no further beginning is no error behind a certificate. */
bool hli_tls_authorities_read(struct hli_tls_authorities *authorities, const char *path)
{
    const size_t before = authorities->count;
    BIO *file = BIO_new_file(path, "r");

    if (!file)
        return false;
    while (authorities_read_next(authorities, file))
        ;
    BIO_free(file);
    if (authorities->count == before ||
        ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

/* ---- folders ---- */

static bool authorities_have_asked(const struct hli_tls_authorities *authorities,
                                   unsigned long subject)
{
    const struct authorities_place *place;

    SLIST_FOREACH(place, &authorities->places, link)
    if (place->subject == subject)
        return true;
    return false;
}

/* True when there is such a file, whatever it has in it: then there may be a next one. */
static bool authorities_look_at(struct hli_tls_authorities *authorities, unsigned long subject,
                                const char *path)
{
    size_t size = strlen(path) + 1;
    struct authorities_place *place = calloc(1, sizeof(*place) + size);

    if (!place)
        return false;
    place->subject = subject;
    memcpy(place->path, path, size);
    bool is_there = hli_file_stamp_take(path, &place->stamp);
    SLIST_INSERT_HEAD(&authorities->places, place, link);
    if (is_there)
        hli_tls_authorities_read(authorities, path);
    ERR_clear_error();
    return is_there;
}

/* The names that `openssl rehash` gives: the subject's hash, and a number. */
static void authorities_look_in(struct hli_tls_authorities *authorities, unsigned long subject,
                                const char *folder, int length)
{
    char path[4096];
    bool is_there = true;

    for (int i = 0; is_there; i++) {
        int size = snprintf(path, sizeof(path), "%.*s/%08lx.%d", length, folder, subject, i);
        is_there = size < (int)sizeof(path) && authorities_look_at(authorities, subject, path);
    }
}

static void authorities_look(struct hli_tls_authorities *authorities, unsigned long subject)
{
    const char *folder = authorities->folders;

    if (authorities_have_asked(authorities, subject))
        return;
    while (*folder) {
        size_t length = strcspn(folder, ":");
        if (length > 0)
            authorities_look_in(authorities, subject, folder, (int)length);
        folder += length + (folder[length] == ':');
    }
}

bool hli_tls_authorities_have_changed(const struct hli_tls_authorities *authorities)
{
    const struct authorities_place *place;

    SLIST_FOREACH(place, &authorities->places, link)
    if (hli_file_stamp_has_changed(&place->stamp, place->path))
        return true;
    return false;
}

/* ---- what OpenSSL asks ---- */

/* A certificate that cannot be decoded signs nothing. */
static void authority_decode(struct authority *authority, X509_STORE *store)
{
    const unsigned char *at = authority->der;
    X509 *certificate = d2i_X509_AUX(NULL, &at, authority->length);

    OPENSSL_free(authority->der);
    authority->der = NULL;
    if (certificate)
        X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
    ERR_clear_error();
}

/* All of a subject go into the store, where OpenSSL chooses among them. It takes a reference of the
 * one that is returned for its own use, as for one that the store had. */
static int authorities_find(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name,
                            X509_OBJECT *ret_found)
{
    struct hli_tls_authorities *authorities = X509_LOOKUP_get_method_data(lookup);
    X509_STORE *store = X509_LOOKUP_get_store(lookup);
    int ok = 0;

    unsigned long subject = X509_NAME_hash_ex(name, NULL, NULL, &ok);
    if (type != X509_LU_X509 || !ok)
        return 0;
    authorities_look(authorities, subject);
    for (size_t i = 0; i < authorities->count; i++)
        if (authorities->list[i].subject == subject && authorities->list[i].der)
            authority_decode(&authorities->list[i], store);
    X509_OBJECT *found =
        X509_OBJECT_retrieve_by_subject(X509_STORE_get0_objects(store), type, name);
    X509 *certificate = found ? X509_OBJECT_get0_X509(found) : NULL;
    if (!certificate || !X509_OBJECT_set1_X509(ret_found, certificate))
        return 0;
    X509_free(certificate); /* X509_LOOKUP_meth_new(3): one reference is too many */
    return 1;
}

static void authorities_on_free(X509_LOOKUP *lookup)
{
    struct hli_tls_authorities *authorities = X509_LOOKUP_get_method_data(lookup);

    if (authorities)
        authorities_free(authorities);
}

X509_LOOKUP_METHOD *hli_tls_authorities_method(void)
{
    X509_LOOKUP_METHOD *method = X509_LOOKUP_meth_new("authorities of hirelock");

    if (method && X509_LOOKUP_meth_set_get_by_subject(method, authorities_find) &&
        X509_LOOKUP_meth_set_free(method, authorities_on_free))
        return method;
    X509_LOOKUP_meth_free(method);
    return NULL;
}

struct hli_tls_authorities *hli_tls_authorities_new(SSL_CTX *context, X509_LOOKUP_METHOD *method,
                                                    const char *folders)
{
    size_t size = (folders ? strlen(folders) : 0) + 1;
    struct hli_tls_authorities *authorities = calloc(1, sizeof(*authorities) + size);
    X509_LOOKUP *lookup =
        authorities ? X509_STORE_add_lookup(SSL_CTX_get_cert_store(context), method) : NULL;

    if (!lookup) {
        free(authorities);
        return NULL;
    }
    SLIST_INIT(&authorities->places);
    if (folders)
        memcpy(authorities->folders, folders, size);
    X509_LOOKUP_set_method_data(lookup, authorities);
    return authorities;
}
