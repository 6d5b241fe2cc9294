/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/screen.h"

#include "cli/cli.h"
#include "cli/top/text.h"

#include <curses.h>
#include <langinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

enum { SCREEN_ESCAPE_MS = 50 }; /* the escape key is told from a key's sequence, by ssh too */

static SCREEN *screen;
static bool has_colors_here;
static const char *screen_ellipsis = "~";

static void screen_use_colors(void)
{
    static const short colors[] = {COLOR_YELLOW, COLOR_RED, COLOR_CYAN};

    has_colors_here = cli_has_colors(STDOUT_FILENO) && has_colors() && start_color() == OK;
    if (!has_colors_here)
        return;
    use_default_colors();
    for (short i = 0; i < 3; i++)
        init_pair((short)(i + 1), colors[i], -1);
}

static attr_t screen_attributes(enum top_style style)
{
    switch (style) {
    case TOP_BOLD:
        return A_BOLD;
    case TOP_FAINT:
        return A_DIM;
    case TOP_BAR:
        return A_REVERSE | (has_colors_here ? COLOR_PAIR(3) : 0);
    case TOP_SELECTED:
        return A_REVERSE;
    case TOP_WAITED:
        return A_BOLD | (has_colors_here ? COLOR_PAIR(1) : 0);
    case TOP_TROUBLE:
        return A_BOLD | (has_colors_here ? COLOR_PAIR(2) : 0);
    default:
        return A_NORMAL;
    }
}

/* It is asked before newterm(3), which leaks when it is not. */
static bool screen_knows_terminal(void)
{
    int rc = 0;

    if (setupterm(NULL, STDOUT_FILENO, &rc) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}

int top_screen_open(void)
{
    const char *term = getenv("TERM");

    screen = screen_knows_terminal() ? newterm(NULL, stdout, stdin) : NULL;
    if (!screen) {
        cli_say("the terminal '%s' is not known here; TERM names it", term ? term : "");
        return CLI_FAILED;
    }
    if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
        screen_ellipsis = "\xe2\x80\xa6";
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(SCREEN_ESCAPE_MS);
    curs_set(0);
    screen_use_colors();
    return CLI_OK;
}

void top_screen_close(void)
{
    endwin();
    delscreen(screen);
    screen = NULL;
}

/* All threads of the library block signals, and so do those of ours. */
void top_screen_stop(void)
{
    sigset_t stop;

    endwin();
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    signal(SIGTSTP, SIG_DFL); /* not ncurses' handler */
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* here it stops */
    sigprocmask(SIG_BLOCK, &stop, NULL);
    top_screen_again();
}

void top_screen_again(void)
{
    struct winsize size;

    endwin(); /* the shell may have had the terminal meanwhile */
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    clearok(stdscr, TRUE);
    refresh();
}

int top_screen_height(void)
{
    return getmaxy(stdscr);
}

int top_screen_width(void)
{
    return getmaxx(stdscr);
}

void top_screen_begin(void)
{
    erase();
}

void top_screen_end(void)
{
    refresh();
}

static void screen_spaces(int count)
{
    for (; count > 0; count--)
        addch(' ');
}

static void screen_put(int row, int column, int width, const char *text, bool is_right)
{
    int used = 0;

    if (row < 0 || row >= LINES || column >= COLS || width <= 0)
        return;
    width = width < COLS - column ? width : COLS - column;
    size_t bytes = top_text_fit(text, width, &used);
    bool is_cut = text[bytes] != '\0';
    if (is_cut)
        bytes = top_text_fit(text, width - 1, &used);
    move(row, column);
    if (is_right && !is_cut)
        screen_spaces(width - used);
    addnstr(text, (int)bytes);
    if (is_cut)
        addstr(screen_ellipsis);
    if (!is_right || is_cut)
        screen_spaces(width - used - (is_cut ? 1 : 0));
}

void top_screen_put(int row, int column, int width, const char *text, enum top_style style)
{
    attrset((int)screen_attributes(style));
    screen_put(row, column, width, text, false);
    attrset(A_NORMAL);
}

void top_screen_put_right(int row, int column, int width, const char *text, enum top_style style)
{
    attrset((int)screen_attributes(style));
    screen_put(row, column, width, text, true);
    attrset(A_NORMAL);
}

static int screen_named_key(wint_t key)
{
    static const struct {
        wint_t named;
        int key;
    } keys[] = {{KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
                {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
                {KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
                {KEY_ENTER, TOP_KEY_ENTER},   {KEY_BACKSPACE, TOP_KEY_BACKSPACE}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i].named == key)
            return keys[i].key;
    return TOP_KEY_OTHER;
}

int top_screen_key(void)
{
    wint_t key = 0;
    int rc = get_wch(&key);

    if (rc == ERR)
        return TOP_KEY_NONE;
    if (rc == KEY_CODE_YES)
        return screen_named_key(key);
    switch (key) {
    case '\r':
    case '\n':
        return TOP_KEY_ENTER;
    case 0x7f:
    case '\b':
        return TOP_KEY_BACKSPACE;
    case 0x1b:
        return TOP_KEY_ESCAPE;
    default:
        return (int)key;
    }
}
