/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/text.h"

#include <limits.h>
#include <string.h>
#include <wchar.h>

/* The bytes of the first letter, and its columns; a byte that is no letter takes one. */
static size_t text_letter(const char *text, int *ret_width)
{
    mbstate_t state = {0};
    wchar_t letter = 0;
    size_t length = mbrtowc(&letter, text, MB_LEN_MAX, &state);

    if (length == 0 || length > MB_LEN_MAX) {
        *ret_width = 1;
        return 1;
    }
    int width = wcwidth(letter);
    *ret_width = width < 0 ? 1 : width;
    return length;
}

size_t top_text_fit(const char *text, int width, int *ret_width)
{
    size_t bytes = 0;
    int used = 0, wide = 0;

    while (text[bytes]) {
        size_t length = text_letter(text + bytes, &wide);
        if (used + wide > width)
            break;
        bytes += length;
        used += wide;
    }
    *ret_width = used;
    return bytes;
}

int top_text_width(const char *text)
{
    int width = 0;

    top_text_fit(text, INT_MAX / 2, &width);
    return width;
}
