/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The terminal's screen, by ncurses, which sends only what has changed. Of one thread. */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <wchar.h>

enum top_style {
    TOP_PLAIN,
    TOP_BOLD,
    TOP_FAINT,
    TOP_BAR,      /* the line of the titles */
    TOP_SELECTED, /* the line that keys are about */
    TOP_WAITED,   /* others wait for it */
    TOP_TROUBLE
};

/* Keys that are no letters. */
enum top_key {
    TOP_KEY_NONE = -1,
    TOP_KEY_UP = 0x200000, /* beyond all letters of Unicode */
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_BACKSPACE,
    TOP_KEY_ESCAPE,
    TOP_KEY_OTHER
};

/* Returns an exit status; it has said why it failed. */
int top_screen_open(void);

/* The terminal is as it was. */
void top_screen_close(void);

/* Stops the process, as the terminal's stop key does, with the terminal as it was. */
void top_screen_stop(void);

/* The process was continued, or the terminal's size has changed. */
void top_screen_again(void);

int top_screen_height(void);
int top_screen_width(void);

/* Between these two the picture is made anew. */
void top_screen_begin(void);
void top_screen_end(void);

/* Writes the text into so many columns, cut with an ellipsis, or filled up with spaces. */
void top_screen_put(int row, int column, int width, const char *text, enum top_style style);

/* The same, set to the right. */
void top_screen_put_right(int row, int column, int width, const char *text, enum top_style style);

/* A letter or an enum top_key; TOP_KEY_NONE: nothing was typed. */
int top_screen_key(void);

#endif
