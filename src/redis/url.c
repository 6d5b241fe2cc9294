/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The URL parser: cut at the delimiters first, decode the parts afterwards, as RFC 3986 wants it.
 */
#include "redis/url.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { URL_REDIS_PORT = 6379, URL_DATABASE_LIMIT = 1000000 };

/* A part of the text that is not copied yet. */
struct url_part {
    const char *at;
    size_t length;
};

/* A percent-decoded copy. Errors: HL_EINVAL (a bad escape, or %00, which would cut the string),
 * HL_ENOMEM. */
static int url_decode(struct url_part part, char **ret_text)
{
    char *text = malloc(part.length + 1), *to = text;

    if (!text)
        return HL_ENOMEM;
    for (size_t i = 0; i < part.length; i++) {
        if (part.at[i] != '%') {
            *to++ = part.at[i];
            continue;
        }
        char hex[3] = {0};
        memcpy(hex, part.at + i + 1, i + 2 < part.length ? 2 : 0);
        *to = (char)strtoul(hex, NULL, 16);
        if (strspn(hex, "0123456789abcdefABCDEF") < 2 || *to == '\0') {
            *to = '\0';
            hli_secret_free(text);
            return HL_EINVAL;
        }
        to++;
        i += 2;
    }
    *to = '\0';
    *ret_text = text;
    return 0;
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
        rc = url_decode(user, &url->username);
    /* Both are empty, as in a template with empty variables: no login. */
    if (rc == 0 && has_password && (login.length > 0 || user.length > 0))
        rc = url_decode(login, &url->password);
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
static int url_host(struct url_part rest, struct hli_url *url, hl_error *err)
{
    struct url_part host = rest, port = {NULL, 0};
    uint32_t number = URL_REDIS_PORT;

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
    url->port = (uint16_t)number;
    int rc = url_decode(host, &url->host);
    if (rc == 0 && !url_is_host(url->host))
        return hli_fail(err, HL_EINVAL, "URL: the host holds a character that no host has");
    return rc == 0 ? 0 : url_undecoded(err, rc, "host");
}

/* Else a password with an @ or / that is not encoded would become part of the host, and be shown in
 * errors. */
static int url_check_marks(struct url_part authority, struct url_part database, hl_error *err)
{
    if (url_has(authority, '@') || url_has(database, '@'))
        return hli_fail(err, HL_EINVAL,
                        "URL: an @ in the user or password is written %%40, a / %%2F");
    if (url_has(authority, '?'))
        return hli_fail(err, HL_EINVAL,
                        "URL: the database is written /1; ?db= is for unix:// only");
    return 0;
}

static int url_parse_tcp(struct url_part rest, struct hli_url *url, hl_error *err)
{
    struct url_part login = {NULL, 0}, authority = rest, database = {rest.at, 0};

    if (url_cut(&rest, '/', &authority))
        database = rest;
    bool has_login = url_cut(&authority, '@', &login);
    int rc = url_check_marks(authority, database, err);
    if (rc == 0 && database.length > 0)
        rc = url_database(database, url, err);
    if (rc == 0 && has_login)
        rc = url_login(login, url, err);
    return rc == 0 ? url_host(authority, url, err) : rc;
}

static int url_parse_unix(struct url_part rest, struct hli_url *url, hl_error *err)
{
    struct url_part path = rest;

    url->kind = HLI_URL_UNIX;
    if (url_cut(&rest, '?', &path)) {
        if (rest.length < 3 || memcmp(rest.at, "db=", 3) != 0)
            return hli_fail(err, HL_EINVAL, "URL: after ? only db=n is known");
        int rc = url_database((struct url_part){rest.at + 3, rest.length - 3}, url, err);
        if (rc < 0)
            return rc;
    }
    if (path.length == 0 || path.at[0] != '/')
        return hli_fail(err, HL_EINVAL, "URL: a unix socket needs an absolute path, unix:///path");
    int rc = url_decode(path, &url->host);
    return rc == 0 ? 0 : url_undecoded(err, rc, "path");
}

/* The text behind the scheme, or NULL. Schemes may be upper or lower case. */
static const char *url_behind(const char *text, const char *scheme)
{
    return strncasecmp(text, scheme, strlen(scheme)) == 0 ? text + strlen(scheme) : NULL;
}

static int url_refuse_scheme(const char *text, hl_error *err)
{
    static const char *const later[] = {"redis-sentinel://", "redis-cluster://",
                                        "redis-masters://"};

    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        if (url_behind(text, later[i]))
            return hli_fail(err, HL_ENOTSUP, "URL: %s is not supported by this version", later[i]);
    return hli_fail(err, HL_EINVAL,
                    "URL: it begins with none of redis://, rediss:// (TLS), valkey://, valkeys:// "
                    "(TLS) and unix://");
}

/* The text behind one of the two schemes, or NULL. */
static const char *url_behind_either(const char *text, const char *redis, const char *valkey)
{
    const char *rest = url_behind(text, redis);

    return rest ? rest : url_behind(text, valkey);
}

int hli_url_parse(const char *text, struct hli_url *ret_url, hl_error *err)
{
    struct hli_url url = {.kind = HLI_URL_TCP};
    const char *tcp = url_behind_either(text, "redis://", "valkey://");
    const char *tls = url_behind_either(text, "rediss://", "valkeys://");
    const char *local = url_behind(text, "unix://");
    int rc;

    url.has_tls = tls != NULL;
    if (tls)
        tcp = tls;
    if (tcp)
        rc = url_parse_tcp((struct url_part){tcp, strlen(tcp)}, &url, err);
    else if (local)
        rc = url_parse_unix((struct url_part){local, strlen(local)}, &url, err);
    else
        rc = url_refuse_scheme(text, err);
    if (rc < 0)
        hli_url_deinit(&url);
    else
        *ret_url = url;
    return rc;
}

void hli_url_deinit(struct hli_url *url)
{
    free(url->host);
    hli_secret_free(url->username);
    hli_secret_free(url->password);
    *url = (struct hli_url){0};
}

void hli_secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void hli_url_where(const struct hli_url *url, char *text, size_t size)
{
    if (url->kind == HLI_URL_UNIX)
        snprintf(text, size, "%s", url->host);
    else
        snprintf(text, size, strchr(url->host, ':') ? "[%s]:%u" : "%s:%u", url->host, url->port);
}
