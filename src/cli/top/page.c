/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/page.h"

#include "cli/top/screen.h"
#include "cli/top/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_LINE = 4096 }; /* bytes of a folded line */

void top_page_begin(struct top_page *page, const char *title, const char *text)
{
    top_page_deinit(page);
    page->title = strdup(title);
    page->text = strdup(text);
    page->first = 0;
}

void top_page_change(struct top_page *page, const char *text)
{
    free(page->text);
    page->text = strdup(text);
}

void top_page_deinit(struct top_page *page)
{
    free(page->title);
    free(page->text);
    *page = (struct top_page){0};
}

/* Copies what fits into one row; returns the beginning of the next one, NULL behind the last. */
static const char *page_fold(const char *text, int width, char line[PAGE_LINE])
{
    size_t length = strcspn(text, "\n");
    int used = 0;

    if (length >= PAGE_LINE)
        length = PAGE_LINE - 1;
    memcpy(line, text, length);
    line[length] = '\0';
    size_t fits = top_text_fit(line, width, &used);
    if (fits == 0 && length > 0) /* a wide letter, and a narrow terminal */
        fits = length;
    size_t words = fits;
    while (fits < length && words > fits / 2 && line[words] != ' ')
        words--;
    if (words > fits / 2) /* between two words, if there is a place */
        fits = words;
    line[fits] = '\0';
    text += fits;
    text += fits < length && *text == ' ';
    text += *text == '\n';
    return *text ? text : NULL;
}

void top_page_draw(struct top_page *page, int row, int rows)
{
    char line[PAGE_LINE];
    int width = top_screen_width(), count = 0;
    const char *at = page->text ? page->text : "";

    for (const char *to = at; to; count++)
        to = page_fold(to, width, line);
    if (page->first > count - (rows - 1))
        page->first = count - (rows - 1);
    if (page->first < 0)
        page->first = 0;
    top_screen_put(row, 0, width, page->title ? page->title : "", TOP_BAR);
    for (int i = 0; at && i < page->first + rows - 1; i++) {
        at = page_fold(at, width, line);
        if (i >= page->first)
            top_screen_put(row + 1 + i - page->first, 0, width, line, TOP_PLAIN);
    }
}

bool top_page_key(struct top_page *page, int key, int rows)
{
    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        page->first--;
        return true;
    case TOP_KEY_DOWN:
    case 'j':
        page->first++;
        return true;
    case TOP_KEY_PAGE_UP:
        page->first -= rows - 1;
        return true;
    case TOP_KEY_PAGE_DOWN:
        page->first += rows - 1;
        return true;
    case TOP_KEY_HOME:
    case 'g':
        page->first = 0;
        return true;
    case TOP_KEY_END:
    case 'G':
        page->first = INT_MAX / 2; /* drawing finds the end */
        return true;
    default:
        return false;
    }
}
