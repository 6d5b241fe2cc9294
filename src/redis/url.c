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

enum { URL_REDIS_PORT = 6379, URL_DATABASE_LIMIT = 1000000 };

/* A part of the text that is not copied yet. */
struct url_part {
    const char *at;
    size_t length;
};

static int url_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

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
        int high = i + 2 < part.length ? url_hex(part.at[i + 1]) : -1;
        int low = i + 2 < part.length ? url_hex(part.at[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            *to = '\0';
            hli_secret_free(text);
            return HL_EINVAL;
        }
        *to++ = (char)(high * 16 + low);
        i += 2;
    }
    *to = '\0';
    *ret_text = text;
    return 0;
}

/* What kept a part from being decoded. */
static int url_undecoded(hl_error *err, int rc, const char *part)
{
    if (rc == HL_ENOMEM)
        return hli_fail(err, rc, "URL: %s", hl_err_text(rc));
    return hli_fail(err, rc, "URL: the %s is not percent-encoded properly", part);
}

static int url_number(struct url_part part, uint32_t limit, uint32_t *ret_number)
{
    uint32_t number = 0;

    if (part.length == 0 || part.length > 9)
        return HL_EINVAL;
    for (size_t i = 0; i < part.length; i++) {
        if (part.at[i] < '0' || part.at[i] > '9')
            return HL_EINVAL;
        number = number * 10 + (uint32_t)(part.at[i] - '0');
    }
    if (number > limit)
        return HL_EINVAL;
    *ret_number = number;
    return 0;
}

/* Takes what stands before `mark` off the front of `rest`; false when there is no mark. */
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
    if (rc == 0 && has_password)
        rc = url_decode(login, &url->password);
    return rc == 0 ? 0 : url_undecoded(err, rc, "user or password");
}

static int url_database(struct url_part part, struct hli_url *url, hl_error *err)
{
    if (url_number(part, URL_DATABASE_LIMIT, &url->database) < 0)
        return hli_fail(err, HL_EINVAL, "URL: the database is not a number");
    return 0;
}

/* Printable, and none of the marks that end a host: a password whose @ is not encoded would else
 * become part of the host, and be shown with it. */
static bool url_is_host(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~' || strchr("/?#@[]", *text))
            return false;
    return true;
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

static int url_parse_tcp(struct url_part rest, struct hli_url *url, hl_error *err)
{
    struct url_part login = {NULL, 0}, authority = rest;
    int rc = 0;

    if (url_cut(&rest, '/', &authority)) {
        if (rest.length > 0)
            rc = url_database(rest, url, err);
    }
    if (rc == 0 && url_cut(&authority, '@', &login))
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

static bool url_has_scheme(const char *text, const char *scheme)
{
    return strncmp(text, scheme, strlen(scheme)) == 0;
}

static int url_refuse_scheme(const char *text, hl_error *err)
{
    static const char *const later[] = {"rediss://", "redis-sentinel://", "redis-cluster://",
                                        "redis-masters://"};

    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        if (url_has_scheme(text, later[i]))
            return hli_fail(err, HL_ENOTSUP, "URL: %s is not supported by this version", later[i]);
    return hli_fail(err, HL_EINVAL, "URL: it begins with neither redis:// nor unix://");
}

int hli_url_parse(const char *text, struct hli_url *ret_url, hl_error *err)
{
    static const char tcp[] = "redis://", local[] = "unix://";
    struct hli_url url = {.kind = HLI_URL_TCP};
    int rc;

    if (url_has_scheme(text, tcp))
        rc = url_parse_tcp((struct url_part){text + strlen(tcp), strlen(text) - strlen(tcp)}, &url,
                           err);
    else if (url_has_scheme(text, local))
        rc = url_parse_unix((struct url_part){text + strlen(local), strlen(text) - strlen(local)},
                            &url, err);
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

char *hli_secret_copy(const char *secret)
{
    return secret ? strdup(secret) : NULL;
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
