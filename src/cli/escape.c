/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/escape.h"

#include <langinfo.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_WIDTH = 4 }; /* "\x1b" */

/* Reads one character of UTF-8 (RFC 3629: the shortest form, no surrogates). Returns its bytes; 0
 * if there is none. */
static size_t escape_read(const unsigned char *at, size_t left, uint32_t *ret_point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80    ? 1
                    : at[0] >= 0xf0 ? 4
                    : at[0] >= 0xe0 ? 3
                    : at[0] >= 0xc2 ? 2
                                    : 0;
    uint32_t point = length <= 1 ? at[0] : at[0] & (0x7fU >> length);

    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3f);
    }
    *ret_point = point;
    bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < least[length] || point > 0x10ffff || is_surrogate ? 0 : length;
}

/* Unicode: C0 and C1, marks of direction, line and paragraph separators, the byte order mark, the
 * soft hyphen, and tags: what is not seen, or moves what is. */
static bool escape_is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || point == 0xad ||
           point == 0x61c || (point >= 0xe0000 && point <= 0xe007f);
}

static char *escape_byte(char *to, unsigned char byte)
{
    snprintf(to, ESCAPE_WIDTH + 1, "\\x%02x", byte);
    return to + ESCAPE_WIDTH;
}

json_object *cli_escaped(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
    char *text = malloc(ESCAPE_WIDTH * length + 1), *to = text;

    if (!text)
        return NULL;
    while (at < end) {
        uint32_t point = 0;
        size_t size = escape_read(at, (size_t)(end - at), &point);
        bool is_shown = size > 0 && !escape_is_control(point);
        if (point == '\\' && size == 1)
            *to++ = '\\';
        for (size_t i = 0; i < (size ? size : 1); i++) {
            if (is_shown)
                *to++ = (char)at[i];
            else
                to = escape_byte(to, at[i]);
        }
        at += size ? size : 1;
    }
    json_object *string = json_object_new_string_len(text, (int)(to - text));
    free(text);
    return string;
}

char *cli_for_locale(const char *text)
{
    bool is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    char *written = malloc(ESCAPE_WIDTH * strlen(text) + 1), *to = written;

    if (!written)
        return NULL;
    for (; *text; text++)
        if (is_utf8 || (unsigned char)*text < 0x80)
            *to++ = *text;
        else
            to = escape_byte(to, (unsigned char)*text);
    *to = '\0';
    return written;
}
