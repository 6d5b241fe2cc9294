/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/frame.h"

#include "cli/top/desk.h"
#include "cli/top/screen.h"
#include "cli/top/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FRAME_ABOVE = 2, FRAME_BELOW = 1, FRAME_LINE = 1024 };

void top_frame_place(int *ret_row, int *ret_rows)
{
    *ret_row = FRAME_ABOVE;
    *ret_rows = top_screen_height() - FRAME_ABOVE - FRAME_BELOW;
}

struct frame_nodes {
    char *text;
    size_t size;
    int count;
};

static void frame_note_node(const hl_node *node, void *arg)
{
    struct frame_nodes *nodes = arg;

    if (node->role == HL_NODE_SENTINEL)
        return;
    if (nodes->count++ == 0)
        snprintf(nodes->text, nodes->size, "%s", node->address);
}

/* Never the URL, which may have a password. */
void top_frame_address(hl_client *client, char *text, size_t size)
{
    struct frame_nodes nodes = {text, size, 0};

    if (hl_client_nodes(client, frame_note_node, &nodes) < 0 || nodes.count < 2)
        return;
    size_t length = strlen(text);
    snprintf(text + length, size - length, " and %d more", nodes.count - 1);
}

__attribute__((format(printf, 2, 3))) static void frame_add(char line[FRAME_LINE],
                                                            const char *format, ...)
{
    size_t length = strlen(line);
    va_list words;

    va_start(words, format);
    vsnprintf(line + length, FRAME_LINE - length, format, words);
    va_end(words);
}

/* "connect ADDRESS: why", "command 'get': ADDRESS: why": the address is on the screen already.
 * Where it is a word of the sentence, all is said. */
static const char *frame_reason(const struct top_desk *desk, const char *why)
{
    size_t length = strlen(desk->address);
    const char *at = length > 0 ? strstr(why, desk->address) : NULL;

    return at && strncmp(at + length, ": ", 2) == 0 ? at + length + 2 : why;
}

/* The state is what matters, so the address makes room for it. */
static void frame_draw_server(const struct top_desk *desk, const struct top_state *state)
{
    const int width = top_screen_width();
    char line[FRAME_LINE] = "", time[16] = "?";
    struct tm local;

    if (state->is_away && localtime_r(&state->away_since, &local))
        strftime(time, sizeof(time), "%H:%M:%S", &local);
    if (state->is_away)
        frame_add(line, "away since %s: %s", time, frame_reason(desk, state->why));
    else
        frame_add(line, "%s", state->has_failed ? frame_reason(desk, state->why) : "connected");
    int least = width / 3, wants = top_text_width(desk->address);
    int left = width - 2 - top_text_width(line);
    int gets = wants < left ? wants : left < least ? least : left;
    gets = wants < gets ? wants : gets;
    top_screen_put(0, 0, gets, desk->address, TOP_BOLD);
    top_screen_put(0, gets + 2, width - gets - 2, line,
                   state->is_away || state->has_failed ? TOP_TROUBLE : TOP_PLAIN);
}

static void frame_draw_counts(const struct top_desk *desk, bool has_surveyed)
{
    const struct top_order *order = &desk->order;
    char line[FRAME_LINE] = "";

    if (desk->is_paused)
        frame_add(line, "paused; ");
    if (order->filter[0])
        frame_add(line, "%zu of ", order->count);
    frame_add(line, "%zu lock%s", order->locks, order->locks == 1 ? "" : "s");
    if (order->keys >= 0)
        frame_add(line, " of %lld keys", (long long)order->keys);
    frame_add(line, ", %zu waited for; by %s%s", order->waited, top_columns[order->column].key,
              order->is_reversed ? ", reversed" : "");
    if (order->filter[0])
        frame_add(line, "; filter %s", order->filter);
    if (!has_surveyed)
        frame_add(line, "; looking ...");
    top_screen_put(1, 0, top_screen_width(), line, TOP_PLAIN);
}

static const char *frame_keys(const struct top_desk *desk)
{
    switch (desk->mode) {
    case TOP_ASKED:
        return "Take it away? [y/N]";
    case TOP_LOCK:
        return "q back  u unlock  Up Down PgUp PgDn move";
    case TOP_HELP:
        return "q back  Up Down PgUp PgDn move";
    default:
        return "q quit  ? help  Enter look  / filter  u unlock  s sort  r reverse  Space pause";
    }
}

static void frame_draw_below(const struct top_desk *desk)
{
    const int row = top_screen_height() - 1, width = top_screen_width();
    char line[FRAME_LINE] = "";

    if (desk->mode == TOP_TYPING) {
        frame_add(line, "/%s_", desk->order.filter);
        top_screen_put(row, 0, width, line, TOP_BOLD);
    } else if (desk->mode == TOP_ASKED) {
        top_screen_put(row, 0, width, frame_keys(desk), TOP_TROUBLE);
    } else if (desk->message[0]) {
        top_screen_put(row, 0, width, desk->message, TOP_BOLD);
    } else {
        top_screen_put(row, 0, width, frame_keys(desk), TOP_FAINT);
    }
}

void top_frame_draw(const struct top_desk *desk)
{
    struct top_state state;

    top_observer_state(desk->observer, &state);
    frame_draw_server(desk, &state);
    frame_draw_counts(desk, state.has_surveyed);
    frame_draw_below(desk);
}
