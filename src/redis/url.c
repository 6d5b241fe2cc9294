/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The URL parser: cut at the delimiters first, decode the parts afterwards, as RFC 3986 wants it.
 */
#include "redis/url.h"

#include "base/error.h"
#include "base/secret.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    URL_REDIS_PORT = 6379,
    URL_SENTINEL_PORT = 26379,
    URL_DATABASE_LIMIT = 1000000,
    URL_ADDRESS_LIMIT = 1000,
};

/* A part of the text that is not copied yet. */
struct url_part {
    const char *at;
    size_t length;
};

/* Percent-decodes the part to where there is room for it. Errors: HL_EINVAL (a bad escape, or %00,
 * which would cut the string). */
static int url_decode_to(struct url_part part, char *to)
{
    for (size_t i = 0; i < part.length; i++) {
        if (part.at[i] != '%') {
            *to++ = part.at[i];
            continue;
        }
        char hex[3] = {0};
        memcpy(hex, part.at + i + 1, i + 2 < part.length ? 2 : 0);
        *to = (char)strtoul(hex, NULL, 16);
        if (strspn(hex, "0123456789abcdefABCDEF") < 2 || *to == '\0')
            return HL_EINVAL;
        to++;
        i += 2;
    }
    *to = '\0';
    return 0;
}

/* An owned copy. Errors: HL_EINVAL, HL_ENOMEM. */
static int url_decode(struct url_part part, char **ret_text)
{
    char *text = malloc(part.length + 1);
    int rc = text ? url_decode_to(part, text) : HL_ENOMEM;

    if (rc == 0)
        *ret_text = text;
    else
        free(text);
    return rc;
}

static int url_decode_secret(struct url_part part, char **ret_secret)
{
    char *secret = hli_secret_new(part.length);
    int rc = secret ? url_decode_to(part, secret) : HL_ENOMEM;

    if (rc == 0)
        *ret_secret = secret;
    else
        hli_secret_free(secret);
    return rc;
}

/* Reports why a part could not be decoded. */
static int url_undecoded(hl_error *err, int rc, const char *part)
{
    if (rc == HL_ENOMEM)
        return hli_fail(err, rc, "URL: %s", hl_err_text(rc));
    return hli_fail(err, rc, "URL: the %s is not percent-encoded properly", part);
}

static int url_number(struct url_part part, uint32_t limit, uint32_t *ret_number)
{
    if (part.length == 0 || part.length > 9 || strspn(part.at, "0123456789") < part.length)
        return HL_EINVAL;
    unsigned long number = strtoul(part.at, NULL, 10); /* to the mark behind the part */
    if (number > limit)
        return HL_EINVAL;
    *ret_number = (uint32_t)number;
    return 0;
}

/* Cuts the text before `mark` off the front of `rest`; false when there is no mark. */
static bool url_cut(struct url_part *rest, char mark, struct url_part *ret_front)
{
    const char *at = memchr(rest->at, mark, rest->length);

    if (!at)
        return false;
    *ret_front = (struct url_part){rest->at, (size_t)(at - rest->at)};
    rest->length -= ret_front->length + 1;
    rest->at = at + 1;
    return true;
}

static int url_login(struct url_part login, struct hli_url *url, hl_error *err)
{
    struct url_part user = login;
    bool has_password = url_cut(&login, ':', &user);
    int rc = 0;

    if (user.length > 0)
        rc = url_decode_secret(user, &url->login.username);
    /* Both are empty, as in a template with empty variables: no login. */
    if (rc == 0 && has_password && (login.length > 0 || user.length > 0))
        rc = url_decode_secret(login, &url->login.password);
    return rc == 0 ? 0 : url_undecoded(err, rc, "user or password");
}

static int url_database(struct url_part part, struct hli_url *url, hl_error *err)
{
    if (url_number(part, URL_DATABASE_LIMIT, &url->database) < 0)
        return hli_fail(err, HL_EINVAL, "URL: the database is not a number from 0 to %d",
                        URL_DATABASE_LIMIT);
    return 0;
}

/* True if the text is printable and has none of the marks that end a host. */
static bool url_is_host(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~' || strchr("/?#@[]", *text))
            return false;
    return true;
}

static bool url_has(struct url_part part, char mark)
{
    return memchr(part.at, mark, part.length) != NULL;
}

/* host, host:port, [v6], [v6]:port */
static int url_address(struct url_part rest, uint32_t usual_port, struct hli_address *ret_address,
                       hl_error *err)
{
    struct url_part host = rest, port = {NULL, 0};
    uint32_t number = usual_port;

    if (rest.length > 0 && rest.at[0] == '[') {
        rest.at++;
        rest.length--;
        if (!url_cut(&rest, ']', &host) || (rest.length > 0 && rest.at[0] != ':'))
            return hli_fail(err, HL_EINVAL, "URL: an IPv6 address needs its closing bracket");
        if (rest.length > 0)
            port = (struct url_part){rest.at + 1, rest.length - 1};
    } else if (url_cut(&rest, ':', &host)) {
        port = rest;
        if (url_has(port, ':'))
            return hli_fail(err, HL_EINVAL,
                            "URL: an IPv6 address stands in brackets, redis://[::1]:6379");
    }
    if (host.length == 0)
        return hli_fail(err, HL_EINVAL, "URL: no host");
    if (port.at && (url_number(port, UINT16_MAX, &number) < 0 || number == 0))
        return hli_fail(err, HL_EINVAL, "URL: the port is not a number from 1 to 65535");
    ret_address->port = (uint16_t)number;
    int rc = url_decode(host, &ret_address->host);
    if (rc == 0 && !url_is_host(ret_address->host))
        return hli_fail(err, HL_EINVAL, "URL: the host holds a character that no host has");
    return rc == 0 ? 0 : url_undecoded(err, rc, "host");
}

static size_t url_count(struct url_part part, char mark)
{
    size_t count = 0;

    for (size_t i = 0; i < part.length; i++)
        count += part.at[i] == mark;
    return count;
}

/* One address, or several with commas between them. */
static int url_addresses(struct url_part rest, struct hli_url *url, hl_error *err)
{
    uint32_t usual_port = url->kind == HLI_URL_SENTINEL ? URL_SENTINEL_PORT : URL_REDIS_PORT;
    size_t count = url_count(rest, ',') + 1;
    int rc = 0;

    if (count > 1 && url->kind == HLI_URL_SERVER)
        return hli_fail(err, HL_EINVAL,
                        "URL: several hosts stand behind redis-sentinel:// or redis-cluster://");
    if (count > URL_ADDRESS_LIMIT)
        return hli_fail(err, HL_EINVAL, "URL: more than %d hosts", URL_ADDRESS_LIMIT);
    url->addresses = calloc(count, sizeof(*url->addresses));
    if (!url->addresses)
        return url_undecoded(err, HL_ENOMEM, "host");
    while (rc == 0 && url->address_count < count) {
        struct url_part one = rest;
        url_cut(&rest, ',', &one);
        rc = url_address(one, usual_port, &url->addresses[url->address_count++], err);
    }
    return rc;
}

/* Else a password with an @ or / that is not encoded would become part of the host, and be shown in
 * errors. */
static int url_check_marks(struct url_part authority, struct url_part path, hl_error *err)
{
    if (url_has(authority, '@') || url_has(path, '@'))
        return hli_fail(err, HL_EINVAL,
                        "URL: an @ in the user or password is written %%40, a / %%2F, a ? %%3F");
    return 0;
}

/* Cuts name=value off the front of a query. */
static bool url_cut_word(struct url_part *query, struct url_part *ret_name,
                         struct url_part *ret_value)
{
    struct url_part word = *query;

    if (!url_cut(query, '&', &word))
        query->length = 0;
    *ret_value = word;
    return url_cut(ret_value, '=', ret_name) && ret_name->length > 0;
}

static bool url_is_db(struct url_part name)
{
    return name.length == 2 && memcmp(name.at, "db", 2) == 0;
}

static int url_no_word(hl_error *err)
{
    return hli_fail(err, HL_EINVAL, "URL: behind ? stands name=value&name=value");
}

/* The database that a query names. A cluster has only one, and redis:// names it before the ?. */
static int url_query_db(struct url_part query, struct hli_url *url, bool may_have_db, hl_error *err)
{
    struct url_part name, value;
    int rc = 0, count = 0;

    while (rc == 0 && query.length > 0) {
        if (!url_cut_word(&query, &name, &value))
            return url_no_word(err);
        if (!url_is_db(name))
            continue;
        if (!may_have_db)
            return hli_fail(err, HL_EINVAL,
                            "URL: the database is written /1; ?db= is for unix:// and "
                            "redis-sentinel://");
        if (++count > 1)
            return hli_fail(err, HL_EINVAL, "URL: db is there twice");
        rc = url_database(value, url, err);
    }
    return rc;
}

/* Cuts what stands behind `?` off the text, and keeps it for hli_url_query(). */
static int url_query(struct url_part *rest, struct hli_url *url, bool may_have_db, hl_error *err)
{
    struct url_part front, query = *rest;

    if (!url_cut(&query, '?', &front))
        return 0;
    *rest = front;
    if (url_has(query, '@'))
        return url_check_marks(query, query, err);
    url->query = hli_secret_new(query.length);
    if (!url->query)
        return url_undecoded(err, HL_ENOMEM, "query");
    memcpy(url->query, query.at, query.length);
    return url_query_db(query, url, may_have_db, err);
}

static int url_visit(struct url_part name, struct url_part value,
                     int (*visit)(const char *name, const char *value, void *arg, hl_error *err),
                     void *arg, hl_error *err)
{
    char *words[2] = {NULL, NULL};
    int rc = url_decode_secret(name, &words[0]);

    if (rc == 0)
        rc = url_decode_secret(value, &words[1]);
    rc = rc == 0 ? visit(words[0], words[1], arg, err) : url_undecoded(err, rc, "query");
    hli_secret_free(words[0]);
    hli_secret_free(words[1]);
    return rc;
}

int hli_url_query(const struct hli_url *url,
                  int (*visit)(const char *name, const char *value, void *arg, hl_error *err),
                  void *arg, hl_error *err)
{
    struct url_part query = {url->query, url->query ? strlen(url->query) : 0}, name, value;
    int rc = 0;

    while (rc == 0 && query.length > 0) {
        if (!url_cut_word(&query, &name, &value))
            return url_no_word(err);
        rc = url_is_db(name) ? 0 : url_visit(name, value, visit, arg, err);
    }
    return rc;
}

/* What stands behind the `/` of sentinels: the master's name. */
static int url_service(struct url_part service, struct hli_url *url, hl_error *err)
{
    if (service.length == 0)
        return hli_fail(err, HL_EINVAL,
                        "URL: behind the sentinels stands the master's name, "
                        "redis-sentinel://host/mymaster");
    int rc = url_decode(service, &url->service);
    return rc == 0 ? 0 : url_undecoded(err, rc, "master's name");
}

static int url_path(struct url_part path, struct hli_url *url, hl_error *err)
{
    if (url->kind == HLI_URL_SENTINEL)
        return url_service(path, url, err);
    int rc = path.length > 0 ? url_database(path, url, err) : 0;
    if (rc == 0 && url->kind == HLI_URL_CLUSTER && url->database != 0)
        return hli_fail(err, HL_EINVAL, "URL: a cluster has only the database 0");
    return rc;
}

static int url_parse_tcp(struct url_part rest, struct hli_url *url, hl_error *err)
{
    struct url_part login = {NULL, 0}, authority, path = {rest.at, 0};
    int rc = url_query(&rest, url, url->kind == HLI_URL_SENTINEL, err);

    authority = rest;
    if (url_cut(&rest, '/', &authority))
        path = rest;
    bool has_login = url_cut(&authority, '@', &login);
    if (rc == 0)
        rc = url_check_marks(authority, path, err);
    if (rc == 0)
        rc = url_path(path, url, err);
    if (rc == 0 && has_login)
        rc = url_login(login, url, err);
    return rc == 0 ? url_addresses(authority, url, err) : rc;
}

static int url_parse_unix(struct url_part rest, struct hli_url *url, hl_error *err)
{
    int rc = url_query(&rest, url, true, err);

    if (rc < 0)
        return rc;
    if (rest.length == 0 || rest.at[0] != '/')
        return hli_fail(err, HL_EINVAL, "URL: a unix socket needs an absolute path, unix:///path");
    url->addresses = calloc(1, sizeof(*url->addresses));
    url->address_count = url->addresses ? 1 : 0;
    rc = url->addresses ? url_decode(rest, &url->addresses->host) : HL_ENOMEM;
    return rc == 0 ? 0 : url_undecoded(err, rc, "path");
}

/* Schemes may be upper or lower case. */
static const struct url_scheme {
    const char *text;
    enum hli_url_kind kind;
    bool has_tls;
    int (*parse)(struct url_part rest, struct hli_url *url, hl_error *err);
} url_schemes[] = {
    {"redis://", HLI_URL_SERVER, false, url_parse_tcp},
    {"rediss://", HLI_URL_SERVER, true, url_parse_tcp},
    {"valkey://", HLI_URL_SERVER, false, url_parse_tcp},
    {"valkeys://", HLI_URL_SERVER, true, url_parse_tcp},
    {"unix://", HLI_URL_SERVER, false, url_parse_unix},
    {"redis-cluster://", HLI_URL_CLUSTER, false, url_parse_tcp},
    {"rediss-cluster://", HLI_URL_CLUSTER, true, url_parse_tcp},
    {"valkey-cluster://", HLI_URL_CLUSTER, false, url_parse_tcp},
    {"valkeys-cluster://", HLI_URL_CLUSTER, true, url_parse_tcp},
    {"redis-sentinel://", HLI_URL_SENTINEL, false, url_parse_tcp},
    {"rediss-sentinel://", HLI_URL_SENTINEL, true, url_parse_tcp},
    {"valkey-sentinel://", HLI_URL_SENTINEL, false, url_parse_tcp},
    {"valkeys-sentinel://", HLI_URL_SENTINEL, true, url_parse_tcp},
};

static const struct url_scheme *url_scheme_of(const char *text)
{
    for (size_t i = 0; i < sizeof(url_schemes) / sizeof(url_schemes[0]); i++)
        if (strncasecmp(text, url_schemes[i].text, strlen(url_schemes[i].text)) == 0)
            return &url_schemes[i];
    return NULL;
}

static int url_refuse_scheme(const char *text, hl_error *err)
{
    static const char later[] = "redis-masters://";

    if (strncasecmp(text, later, sizeof(later) - 1) == 0)
        return hli_fail(err, HL_ENOTSUP, "URL: %s is not supported by this version", later);
    return hli_fail(err, HL_EINVAL,
                    "URL: it begins with none of redis://, rediss:// (TLS), redis-sentinel://, "
                    "redis-cluster://, rediss- for TLS, unix://, and valkey for redis");
}

int hli_url_parse(const char *text, struct hli_url *ret_url, hl_error *err)
{
    const struct url_scheme *scheme = url_scheme_of(text);

    if (!scheme)
        return url_refuse_scheme(text, err);
    const char *rest = text + strlen(scheme->text);
    struct hli_url url = {.kind = scheme->kind, .has_tls = scheme->has_tls};
    int rc = scheme->parse((struct url_part){rest, strlen(rest)}, &url, err);
    if (rc < 0)
        hli_url_deinit(&url);
    else
        *ret_url = url;
    return rc;
}

void hli_url_deinit(struct hli_url *url)
{
    for (size_t i = 0; i < url->address_count; i++)
        hli_address_deinit(&url->addresses[i]);
    free(url->addresses);
    free(url->service);
    hli_secret_free(url->query);
    hli_login_deinit(&url->login);
    hli_login_deinit(&url->sentinel_login);
    *url = (struct hli_url){0};
}

int hli_address_init(struct hli_address *ret_address, const char *host, uint16_t port)
{
    if (!host[0] || (port != 0 && !url_is_host(host)))
        return HL_EINVAL;
    char *copy = strdup(host);
    if (!copy)
        return HL_ENOMEM;
    *ret_address = (struct hli_address){copy, port};
    return 0;
}

void hli_address_deinit(struct hli_address *address)
{
    free(address->host);
    *address = (struct hli_address){0};
}

bool hli_address_is(const struct hli_address *address, const char *host, uint16_t port)
{
    return address->host && address->port == port && strcasecmp(address->host, host) == 0;
}

void hli_address_where(const struct hli_address *address, char text[HLI_WHERE_SIZE])
{
    if (address->port == 0)
        snprintf(text, HLI_WHERE_SIZE, "%s", address->host);
    else
        snprintf(text, HLI_WHERE_SIZE, strchr(address->host, ':') ? "[%s]:%u" : "%s:%u",
                 address->host, address->port);
}
