/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/top/table.h"

#include "cli/top/screen.h"
#include "cli/top/text.h"

size_t top_table_room(const struct top_table *table)
{
    return table->rows > 1 ? (size_t)table->rows - 1 : 0;
}

void top_table_follow(struct top_table *table, size_t count)
{
    size_t room = top_table_room(table);

    if (room > 0 && table->selected >= table->first + room)
        table->first = table->selected - room + 1;
    if (table->selected < table->first)
        table->first = table->selected;
    if (table->first + room > count)
        table->first = count > room ? count - room : 0;
}

/* A column without a width is not shown. */
struct table_widths {
    int of[TOP_COLUMNS];
};

static int table_width(const struct table_widths *widths)
{
    int sum = -1;

    for (size_t i = 0; i < TOP_COLUMNS; i++)
        if (widths->of[i] > 0)
            sum += widths->of[i] + 1;
    return sum;
}

/* The one that is needed least. */
static size_t table_least(const struct table_widths *widths)
{
    size_t least = TOP_NAME;

    for (size_t i = 0; i < TOP_COLUMNS; i++)
        if (widths->of[i] > 0 && top_columns[i].rank > top_columns[least].rank)
            least = i;
    return least;
}

/* How much wider than the least width the column is with all that stands in it now. */
static int table_need(const struct top_table *table, const struct top_order *order,
                      enum top_column column)
{
    size_t end = table->first + top_table_room(table);
    char text[TOP_TEXT];
    int most = 0;

    for (size_t i = table->first; i < end && i < order->count; i++) {
        top_columns[column].write(order->rows[i], &order->moment, text);
        int width = top_text_width(text);
        most = width > most ? width : most;
    }
    return most > top_columns[column].width ? most - top_columns[column].width : 0;
}

/* Columns that have no room are left out; the name and the holder share what is left, and the name
 * gets what the holder does not need. */
static void table_measure(const struct top_table *table, const struct top_order *order,
                          struct table_widths *ret_widths)
{
    const int width = top_screen_width();

    for (size_t i = 0; i < TOP_COLUMNS; i++)
        ret_widths->of[i] = top_columns[i].width;
    while (table_width(ret_widths) > width && table_least(ret_widths) != TOP_NAME)
        ret_widths->of[table_least(ret_widths)] = 0;
    int left = width - table_width(ret_widths);
    if (left > 0 && ret_widths->of[TOP_HOLDER] > 0) {
        int name = table_need(table, order, TOP_NAME),
            holder = table_need(table, order, TOP_HOLDER);
        int most = name < left / 2 ? left - name : left - left / 2;
        int gets = holder < most ? holder : most;
        ret_widths->of[TOP_HOLDER] += gets;
        left -= gets;
    }
    ret_widths->of[TOP_NAME] += left;
}

static enum top_style table_style(const struct top_record *record, bool is_selected)
{
    if (is_selected)
        return TOP_SELECTED;
    if (record->is_free)
        return TOP_FAINT;
    return record->waiters > 0 ? TOP_WAITED : TOP_PLAIN;
}

/* record: NULL for the line of the titles. */
static void table_line(int row, const struct table_widths *widths, const struct top_order *order,
                       const struct top_record *record, enum top_style style)
{
    char text[TOP_TEXT];
    int at = 0;

    top_screen_put(row, 0, top_screen_width(), "", style);
    for (size_t i = 0; i < TOP_COLUMNS; i++) {
        if (widths->of[i] <= 0)
            continue;
        if (record)
            top_columns[i].write(record, &order->moment, text);
        (top_columns[i].is_number ? top_screen_put_right : top_screen_put)(
            row, at, widths->of[i], record ? text : top_columns[i].title, style);
        at += widths->of[i] + 1;
    }
}

void top_table_draw(const struct top_table *table, const struct top_order *order)
{
    size_t room = top_table_room(table);
    struct table_widths widths;

    table_measure(table, order, &widths);
    table_line(table->row, &widths, order, NULL, TOP_BAR);
    for (size_t i = 0; i < room && table->first + i < order->count; i++) {
        const struct top_record *record = order->rows[table->first + i];
        bool is_selected = table->first + i == table->selected;
        table_line(table->row + 1 + (int)i, &widths, order, record,
                   table_style(record, is_selected));
    }
}
