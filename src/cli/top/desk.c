/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/desk.h"

#include "cli/escape.h"
#include "cli/top/frame.h"
#include "cli/top/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

static const char desk_help[] =
    "Up Down j k      one lock up, down\n"
    "PgUp PgDn        a screen up, down\n"
    "Home End g G     the first, the last lock\n"
    "Enter            all of this lock; q goes back\n"
    "s > <            sorts by the next column, and by the one before\n"
    "1 to 8           sorts by this column\n"
    "r                the other way round\n"
    "/                shows names with this text, or of this pattern (* ? [)\n"
    "Esc              shows all names again; then it ends\n"
    "u                takes this lock from its owner, after it has asked\n"
    "Space            holds the picture, and goes on\n"
    "q                ends\n"
    "\n"
    "WAITERS   clients in the lock's queue at the server; of a fair lock, owners\n"
    "LONGEST   how long the first of them has been there; not known of a fair lock\n"
    "HELD      >= where no holder's tag says since when\n"
    "OWNERS/S  changes of the owner that were seen in the last seconds. The server counts none, "
    "so the looks do: ten a second at the locks on the screen, fewer at others. >= means that at "
    "least every second look saw a new owner: there may have been many more. Tokens of fenced "
    "locks are counted by the server: exact, where no client takes a stock of them.\n";

void top_desk_init(struct top_desk *desk, struct top_store *store, struct top_observer *observer,
                   struct top_errands *errands)
{
    *desk = (struct top_desk){.store = store, .observer = observer, .errands = errands};
    desk->order.column = TOP_WAITERS;
    desk->order.moment.prefix = observer->prefix;
}

static void desk_unselect(struct top_desk *desk)
{
    free((char *)desk->selected.bytes);
    desk->selected = (struct cli_name){0};
}

void top_desk_deinit(struct top_desk *desk)
{
    desk_unselect(desk);
    json_object_put(desk->target);
    top_page_deinit(&desk->page);
    top_order_deinit(&desk->order);
}

/* The selected row follows its lock; when that is gone, its place is the next lock's. */
static void desk_follow(struct top_desk *desk)
{
    const struct top_order *order = &desk->order;
    size_t at = desk->selected.bytes
                    ? top_order_find(order, desk->selected.bytes, desk->selected.length)
                    : 0;

    if (at < order->count)
        desk->table.selected = at;
    else if (desk->table.selected >= order->count)
        desk->table.selected = order->count > 0 ? order->count - 1 : 0;
    top_frame_place(&desk->table.row, &desk->table.rows);
    top_table_follow(&desk->table, order->count);
}

void top_desk_refresh(struct top_desk *desk)
{
    if (!desk->is_paused) {
        top_store_sweep(desk->store);
        desk->order.moment.now_ms = cli_now_ms();
        top_frame_address(desk->observer->client, desk->address, sizeof(desk->address));
    }
    pthread_mutex_lock(&desk->store->mutex);
    top_order_make(&desk->order, desk->store);
    pthread_mutex_unlock(&desk->store->mutex);
    desk_follow(desk);
    if (desk->mode == TOP_LOCK && !desk->is_inspecting)
        desk->is_inspecting = top_errands_begin(desk->errands, TOP_INSPECT, &desk->selected, NULL);
}

void top_desk_glance(struct top_desk *desk)
{
    size_t first = desk->table.first, room = top_table_room(&desk->table);
    size_t count = desk->order.count > first ? desk->order.count - first : 0;

    top_observer_glance(desk->observer, desk->order.rows + first, count < room ? count : room);
}

void top_desk_draw(struct top_desk *desk)
{
    top_screen_begin();
    desk_follow(desk);
    top_frame_draw(desk);
    if (desk->mode == TOP_TABLE || desk->mode == TOP_TYPING) {
        pthread_mutex_lock(&desk->store->mutex);
        top_table_draw(&desk->table, &desk->order);
        pthread_mutex_unlock(&desk->store->mutex);
    } else {
        top_page_draw(&desk->page, desk->table.row, desk->table.rows);
    }
    top_screen_end();
}

static void desk_say(struct top_desk *desk, const char *text)
{
    snprintf(desk->message, sizeof(desk->message), "%s", text ? text : "there is no memory left");
}

/* From now on it is this lock, wherever it goes. */
static void desk_select(struct top_desk *desk, size_t row)
{
    const struct top_record *record = row < desk->order.count ? desk->order.rows[row] : NULL;
    char *bytes = record ? malloc((size_t)record->length + 1) : NULL;

    if (!bytes)
        return;
    memcpy(bytes, record->name, (size_t)record->length + 1);
    desk_unselect(desk);
    desk->selected = (struct cli_name){bytes, record->length, desk->order.moment.prefix};
    desk->table.selected = row;
}

static void desk_sort(struct top_desk *desk, unsigned column)
{
    desk->order.column = (enum top_column)(column % TOP_COLUMNS);
    desk->order.is_reversed = false;
}

static void desk_help_open(struct top_desk *desk)
{
    top_page_begin(&desk->page, "KEYS", desk_help);
    desk->mode = TOP_HELP;
}

static void desk_title(const struct top_desk *desk, char title[TOP_TEXT])
{
    json_object *name = cli_escaped(desk->selected.bytes + desk->selected.prefix,
                                    desk->selected.length - desk->selected.prefix);

    snprintf(title, TOP_TEXT, "%s", name ? json_object_get_string(name) : "");
    json_object_put(name);
}

static void desk_open_lock(struct top_desk *desk)
{
    char title[TOP_TEXT];

    desk_select(desk, desk->table.selected);
    if (!desk->selected.bytes)
        return;
    desk_title(desk, title);
    top_page_begin(&desk->page, title, "looking ...");
    desk->mode = TOP_LOCK;
}

static void desk_ask(struct top_desk *desk)
{
    if (desk->mode == TOP_TABLE)
        desk_select(desk, desk->table.selected);
    if (!desk->selected.bytes)
        return;
    desk->awaits_who = top_errands_begin(desk->errands, TOP_ASK, &desk->selected, NULL);
    desk_say(desk, desk->awaits_who ? "asking who holds it ..."
                                    : "the server has not answered the last question yet");
}

static void desk_pause(struct top_desk *desk)
{
    desk->is_paused = !desk->is_paused;
    top_observer_pause(desk->observer, desk->is_paused);
}

static void desk_escape(struct top_desk *desk)
{
    if (desk->order.filter[0])
        desk->order.filter[0] = '\0';
    else
        desk->is_over = true;
}

/* By so many rows. */
static void desk_move(struct top_desk *desk, long long by)
{
    long long row = (long long)desk->table.selected + by, last = (long long)desk->order.count - 1;

    row = row > last ? last : row;
    desk_select(desk, row > 0 ? (size_t)row : 0);
}

/* The first row again, whichever lock that is. */
static void desk_move_home(struct top_desk *desk)
{
    desk_unselect(desk);
    desk->table.selected = desk->table.first = 0;
}

static bool desk_move_key(struct top_desk *desk, int key)
{
    long long room = (long long)top_table_room(&desk->table);

    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        desk_move(desk, -1);
        return true;
    case TOP_KEY_DOWN:
    case 'j':
        desk_move(desk, 1);
        return true;
    case TOP_KEY_PAGE_UP:
        desk_move(desk, -room);
        return true;
    case TOP_KEY_PAGE_DOWN:
        desk_move(desk, room);
        return true;
    case TOP_KEY_HOME:
    case 'g':
        desk_move_home(desk);
        return true;
    case TOP_KEY_END:
    case 'G':
        desk_move(desk, (long long)desk->order.count);
        return true;
    default:
        return false;
    }
}

static bool desk_sort_key(struct top_desk *desk, int key)
{
    if (key == 's' || key == '>')
        desk_sort(desk, desk->order.column + 1U);
    else if (key == '<')
        desk_sort(desk, desk->order.column + TOP_COLUMNS - 1U);
    else if (key >= '1' && key < '1' + TOP_COLUMNS)
        desk_sort(desk, (unsigned)(key - '1'));
    else if (key == 'r')
        desk->order.is_reversed = !desk->order.is_reversed;
    else
        return false;
    return true;
}

static void desk_table_key(struct top_desk *desk, int key)
{
    if (desk_move_key(desk, key) || desk_sort_key(desk, key))
        return;
    switch (key) {
    case TOP_KEY_ENTER:
        desk_open_lock(desk);
        return;
    case '/':
        desk->mode = TOP_TYPING;
        return;
    case 'u':
        desk_ask(desk);
        return;
    case ' ':
        desk_pause(desk);
        return;
    case '?':
    case 'h':
        desk_help_open(desk);
        return;
    case TOP_KEY_ESCAPE:
        desk_escape(desk);
        return;
    case 'q':
        desk->is_over = true;
        return;
    default:
        return;
    }
}

/* The last letter, which may have several bytes of UTF-8. */
static void desk_shorten(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
        length--;
    text[length > 0 ? length - 1 : 0] = '\0';
}

static void desk_type(struct top_desk *desk, int key)
{
    char *filter = desk->order.filter, letter[MB_LEN_MAX + 1] = "";
    mbstate_t state = {0};
    size_t length = strlen(filter);

    if (key < ' ' || key >= TOP_KEY_UP || !iswprint((wint_t)key))
        return;
    size_t size = wcrtomb(letter, (wchar_t)key, &state);
    if (size <= MB_LEN_MAX && length + size < TOP_FILTER)
        snprintf(filter + length, TOP_FILTER - length, "%s", letter);
}

static void desk_typing_key(struct top_desk *desk, int key)
{
    const int wipe = 'U' - '@'; /* control-U */

    if (key == TOP_KEY_BACKSPACE)
        desk_shorten(desk->order.filter);
    else if (key == wipe || key == TOP_KEY_ESCAPE)
        desk->order.filter[0] = '\0';
    else
        desk_type(desk, key);
    if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE)
        desk->mode = TOP_TABLE;
}

static void desk_page_key(struct top_desk *desk, int key)
{
    bool is_help_key = desk->mode == TOP_HELP && (key == '?' || key == 'h');

    if (top_page_key(&desk->page, key, desk->table.rows))
        return;
    if (key == 'u' && desk->mode == TOP_LOCK)
        desk_ask(desk);
    else if (key == 'q' || key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER || is_help_key)
        desk->mode = TOP_TABLE;
}

static void desk_asked_key(struct top_desk *desk, int key)
{
    json_object *target = desk->target;
    bool takes = key == 'y' || key == 'Y';

    desk->target = NULL;
    desk->mode = TOP_TABLE;
    if (takes)
        takes = top_errands_begin(desk->errands, TOP_TAKE, &desk->selected, target);
    else
        json_object_put(target);
    desk_say(desk, takes ? "taking it away ..." : "nothing was done");
}

void top_desk_key(struct top_desk *desk, int key)
{
    if (key == TOP_KEY_OTHER) /* the size has changed, or a key that nobody knows */
        return;
    desk->message[0] = '\0';
    desk->awaits_who = false;
    switch (desk->mode) {
    case TOP_TABLE:
        desk_table_key(desk, key);
        break;
    case TOP_TYPING:
        desk_typing_key(desk, key);
        break;
    case TOP_HELP:
    case TOP_LOCK:
        desk_page_key(desk, key);
        break;
    case TOP_ASKED:
        desk_asked_key(desk, key);
        break;
    }
}

static bool desk_is_about(const struct top_desk *desk, const struct top_errand *errand)
{
    return desk->selected.bytes && desk->selected.length == errand->name.length &&
           memcmp(desk->selected.bytes, errand->name.bytes, errand->name.length) == 0;
}

/* An operator who has gone on to something else is not asked any more. */
static void desk_hear_who(struct top_desk *desk, struct top_errand *errand)
{
    char title[TOP_TEXT], text[4096];

    if (!desk->awaits_who || !desk_is_about(desk, errand))
        return;
    desk->awaits_who = false;
    desk_say(desk, errand->is_done ? "" : errand->text);
    if (!errand->is_done || !errand->text)
        return;
    desk_title(desk, title);
    snprintf(text, sizeof(text),
             "%s\n\nIf it is taken away, those who wait are woken. The owner may be inside what it "
             "protects: its client is told, or learns of its loss at its next renewal.",
             errand->text);
    top_page_begin(&desk->page, title, text);
    desk->target = errand->lock;
    errand->lock = NULL;
    desk->mode = TOP_ASKED;
}

void top_desk_hear(struct top_desk *desk)
{
    struct top_errand *errand = top_errands_end(desk->errands);

    if (!errand)
        return;
    switch (errand->kind) {
    case TOP_INSPECT:
        desk->is_inspecting = false;
        if (desk->mode == TOP_LOCK && desk_is_about(desk, errand))
            top_page_change(&desk->page, errand->text ? errand->text : "");
        break;
    case TOP_ASK:
        desk_hear_who(desk, errand);
        break;
    case TOP_TAKE:
        desk_say(desk, errand->text);
        break;
    }
    top_errand_free(errand);
}
