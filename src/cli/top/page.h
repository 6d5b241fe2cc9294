/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A page of text on the screen: long lines are folded, and it can be moved through. */
#ifndef CLI_TOP_PAGE_H
#define CLI_TOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct top_page {
    char *title, *text; /* owned */
    int first;          /* the folded line at the top */
};

/* Another page; it takes copies of the texts. */
void top_page_begin(struct top_page *page, const char *title, const char *text);

/* Another text in the same place. */
void top_page_change(struct top_page *page, const char *text);
void top_page_deinit(struct top_page *page);

/* Draws it from this row of the screen on, over so many rows, the title first. */
void top_page_draw(struct top_page *page, int row, int rows);

/* Moves through it. False: the key means nothing here. */
bool top_page_key(struct top_page *page, int key, int rows);

#endif
