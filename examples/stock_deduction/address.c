/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* URLs, as far as the shop needs them. hirelock reads the same one, and is strict about it. */
#define _POSIX_C_SOURCE 200809L
#include "address.h"

#include <stdlib.h>
#include <string.h>

/* A part of a URL, from begin to end, without its percent-encoding. */
static bool address_part(char *to, size_t size, const char *begin, const char *end)
{
    size_t length = 0;

    for (; begin < end && length + 1 < size; begin++) {
        char hex[3] = {0};
        if (*begin == '%' && end - begin > 2) {
            memcpy(hex, begin + 1, 2);
            to[length++] = (char)strtol(hex, NULL, 16);
            begin += 2;
        } else {
            to[length++] = *begin;
        }
    }
    to[length] = '\0';
    return begin == end;
}

/* A port or a database: digits, and then the end of the part. -1 when it is something else. */
static int address_number(const char *text)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);

    return end != text && (*end == '\0' || *end == '/') && number >= 0 && number <= 65535
               ? (int)number
               : -1;
}

static const char *address_first(const char *begin, const char *end, char wanted)
{
    const char *found = memchr(begin, wanted, (size_t)(end - begin));

    return found ? found : end;
}

static bool address_user(struct address *address, const char *begin, const char *end)
{
    const char *colon = address_first(begin, end, ':');

    return address_part(address->user, sizeof(address->user), begin, colon) &&
           (colon == end ||
            address_part(address->password, sizeof(address->password), colon + 1, end));
}

static bool address_host(struct address *address, const char *begin, const char *end)
{
    bool is_v6 = begin < end && *begin == '[';
    const char *close = is_v6 ? address_first(begin, end, ']') : begin;
    const char *colon = address_first(close, end, ':');
    const char *host_end = is_v6 ? close : colon;

    address->port = colon < end ? address_number(colon + 1) : 6379;
    return address_part(address->host, sizeof(address->host), begin + is_v6, host_end) &&
           address->host[0] != '\0' && address->port > 0;
}

static bool address_tcp(struct address *address, const char *rest)
{
    const char *end = rest + strcspn(rest, "/");
    const char *at = address_first(rest, end, '@');

    if (*end == '/' && end[1] != '\0')
        address->db = address_number(end + 1);
    return (at == end || address_user(address, rest, at)) &&
           address_host(address, at == end ? rest : at + 1, end);
}

static bool address_unix(struct address *address, const char *rest)
{
    const char *query = strstr(rest, "?db=");

    if (query)
        address->db = address_number(query + 4);
    return address_part(address->path, sizeof(address->path), rest,
                        query ? query : rest + strlen(rest));
}

bool address_read(struct address *address, const char *url)
{
    *address = (struct address){0};
    bool is_unix = strncmp(url, "unix://", 7) == 0;
    if (!is_unix && strncmp(url, "redis://", 8) != 0)
        return false;
    bool is_whole = is_unix ? address_unix(address, url + 7) : address_tcp(address, url + 8);
    return is_whole && address->db >= 0;
}
