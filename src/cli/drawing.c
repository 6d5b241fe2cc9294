/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/drawing.h"

#include "cli/escape.h"
#include "cli/output.h"

#include <ctype.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DRAWING_TREES = 20,
    DRAWING_CHILDREN = 10, /* of one owner */
    DRAWING_DEPTH = 8,
    DRAWING_CIRCLE = 20, /* owners of one circle */
    DRAWING_WAITS = 200, /* in all trees */
    DRAWING_LOCKS = 3,   /* that an owner holds */
    DRAWING_INDENT = 4 * (DRAWING_DEPTH + 1) * 4
};

struct drawing {
    const struct cli_blocked *blocked;
    const struct cli_server *server;
    const char *branch, *last, *bar, *gap;
    bool has_colors;
    size_t waits; /* drawn so far */
};

static const struct drawing drawing_plain = {
    .branch = "|- ", .last = "`- ", .bar = "|  ", .gap = "   "};
static const struct drawing drawing_utf8 = {
    .branch = "\u251c\u2500 ", .last = "\u2514\u2500 ", .bar = "\u2502  ", .gap = "   "};

static void drawing_time(long long ms)
{
    json_object *value = json_object_new_int64(ms);
    char *text = cli_say_ms(value);

    printf(" (%s)", text ? text : "");
    free(text);
    json_object_put(value);
}

static void drawing_name(const struct cli_blocked_lock *lock)
{
    json_object *shown =
        cli_escaped(lock->name.bytes + lock->name.prefix, lock->name.length - lock->name.prefix);

    printf("%s", shown ? json_object_get_string(shown) : "");
    json_object_put(shown);
}

/* "stock (12.0s)" */
static void drawing_held(const struct cli_blocked_lock *lock)
{
    json_object *held_ms;

    drawing_name(lock);
    if (json_object_object_get_ex(lock->look, "held_ms", &held_ms))
        drawing_time(json_object_get_int64(held_ms));
}

static void drawing_waits(const struct cli_blocked *blocked, size_t wait)
{
    drawing_name(cli_blocked_lock_of(blocked, wait));
    drawing_time(blocked->waits[wait].wait.waited_ms);
}

/* " holds stock (12.0s), shelf (3.0s)": the locks for which others wait. */
static void drawing_holds(const struct cli_blocked *blocked, size_t owner, const char *holds)
{
    size_t shown = 0;

    for (size_t i = 0; i < blocked->lock_count; i++) {
        const struct cli_blocked_lock *lock = &blocked->locks[i];
        if (lock->holder != owner || !lock->is_awaited)
            continue;
        if (shown == DRAWING_LOCKS) {
            printf(", ...");
            return;
        }
        printf("%s", shown++ == 0 ? holds : ", ");
        drawing_held(lock);
    }
}

static size_t drawing_behind(const struct cli_blocked *blocked, size_t wait)
{
    const struct cli_blocked_owner *waiter = &blocked->owners[blocked->waits[wait].waiter];

    return cli_blocked_is_first(blocked, wait) && waiter->deadlock == 0 ? waiter->behind : 0;
}

/* The most blocking first, then the longest. */
static bool drawing_is_before(const struct cli_blocked *blocked, size_t left, size_t right)
{
    size_t a = drawing_behind(blocked, left), b = drawing_behind(blocked, right);

    return a != b ? a > b
                  : blocked->waits[left].wait.since_ms < blocked->waits[right].wait.since_ms;
}

/* The first children of an owner in their order, but not the wait of its own circle; returns how
 * many there are in all. */
static size_t drawing_children(const struct cli_blocked *blocked, size_t owner,
                               size_t child[DRAWING_CHILDREN])
{
    unsigned deadlock = blocked->owners[owner].deadlock;
    size_t count = 0;

    for (size_t at = blocked->owners[owner].first; at != CLI_NONE; at = blocked->waits[at].next) {
        const struct cli_blocked_owner *waiter = &blocked->owners[blocked->waits[at].waiter];
        if (!blocked->waits[at].is_shown ||
            (deadlock != 0 && waiter->deadlock == deadlock && waiter->wait == at))
            continue;
        size_t place = count < DRAWING_CHILDREN ? count : DRAWING_CHILDREN;
        while (place > 0 && drawing_is_before(blocked, at, child[place - 1])) {
            if (place < DRAWING_CHILDREN)
                child[place] = child[place - 1];
            place--;
        }
        if (place < DRAWING_CHILDREN)
            child[place] = at;
        count++;
    }
    return count;
}

static void drawing_tree(struct drawing *drawing, size_t owner, const char *indent, unsigned depth);

/* "web-2 4712 worker waits for stock (8.0s) and holds shelf (9.0s)" */
static void drawing_child(struct drawing *drawing, size_t wait, const char *indent, bool is_last,
                          unsigned depth)
{
    const struct cli_blocked *blocked = drawing->blocked;
    size_t waiter = blocked->waits[wait].waiter;
    const struct cli_blocked_owner *owner = &blocked->owners[waiter];
    char more[DRAWING_INDENT];

    drawing->waits++;
    printf("%s%s%s waits for ", indent, is_last ? drawing->last : drawing->branch, owner->label);
    drawing_waits(blocked, wait);
    drawing_holds(blocked, waiter, " and holds ");
    putchar('\n');
    if (!cli_blocked_is_first(blocked, wait) || owner->deadlock != 0)
        return;
    snprintf(more, sizeof(more), "%s%s", indent, is_last ? drawing->gap : drawing->bar);
    drawing_tree(drawing, waiter, more, depth + 1);
}

static void drawing_tree(struct drawing *drawing, size_t owner, const char *indent, unsigned depth)
{
    size_t child[DRAWING_CHILDREN], count = drawing_children(drawing->blocked, owner, child);
    size_t shown = count < DRAWING_CHILDREN ? count : DRAWING_CHILDREN;

    if (depth == DRAWING_DEPTH && count > 0) {
        printf("%s%s... %zu more behind it\n", indent, drawing->last,
               drawing->blocked->owners[owner].behind);
        return;
    }
    for (size_t i = 0; i < shown && drawing->waits < DRAWING_WAITS; i++)
        drawing_child(drawing, child[i], indent, i + 1 == count, depth);
    if (count > shown)
        printf("%s%s... and %zu more\n", indent, drawing->last, count - shown);
}

/* By which wait the circle comes to this owner. */
static size_t drawing_circle_to(const struct cli_blocked *blocked, size_t owner)
{
    size_t at = blocked->owners[owner].first;

    for (; at != CLI_NONE; at = blocked->waits[at].next) {
        const struct cli_blocked_owner *waiter = &blocked->owners[blocked->waits[at].waiter];
        if (waiter->deadlock == blocked->owners[owner].deadlock && waiter->wait == at)
            break;
    }
    return at;
}

static long long drawing_held_ms(const struct cli_blocked *blocked, size_t owner)
{
    size_t wait = drawing_circle_to(blocked, owner);

    return json_object_get_int64(
        json_object_object_get(cli_blocked_lock_of(blocked, wait)->look, "held_ms"));
}

static size_t drawing_follow(const struct cli_blocked *blocked, size_t owner)
{
    return cli_blocked_holder(blocked, blocked->owners[owner].wait);
}

/* A word of the shell, or nothing for a name that a terminal should not be given. */
static void drawing_word(const char *bytes, size_t length)
{
    bool is_plain = length > 0;

    for (size_t i = 0; i < length; i++)
        is_plain = is_plain && (isalnum((unsigned char)bytes[i]) || strchr("_.:/@%+=,-", bytes[i]));
    if (is_plain) {
        printf("%.*s", (int)length, bytes);
        return;
    }
    putchar('\'');
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '\'')
            printf("'\\''");
        else
            putchar(bytes[i]);
    putchar('\'');
}

/* Can the name be typed? */
static bool drawing_may_type(const struct cli_name *name)
{
    json_object *shown = cli_escaped(name->bytes, name->length);
    bool may = shown && (size_t)json_object_get_string_len(shown) == name->length;

    json_object_put(shown);
    return may;
}

/* The words that lead to the same server and name as ours. */
static void drawing_options(const struct drawing *drawing, const struct cli_name *name)
{
    char *url = cli_server_shown_url(drawing->server);

    if (url) {
        printf("--url ");
        drawing_word(url, strlen(url));
        putchar(' ');
    }
    free(url);
    if (name->prefix > 0) {
        printf("--prefix ");
        drawing_word(name->bytes, name->prefix);
        putchar(' ');
    }
    if (name->bytes[name->prefix] == '-')
        printf("-- ");
}

/* It costs the least to take the lock from the one that has had it for the shortest time. */
static void drawing_advise(const struct drawing *drawing, size_t owner)
{
    const struct cli_blocked *blocked = drawing->blocked;
    size_t victim = owner;

    for (size_t at = drawing_follow(blocked, owner); at != owner; at = drawing_follow(blocked, at))
        if (drawing_held_ms(blocked, at) < drawing_held_ms(blocked, victim))
            victim = at;
    const struct cli_name *name =
        &cli_blocked_lock_of(blocked, drawing_circle_to(blocked, victim))->name;
    printf("  to end it: stop one of them, or take a lock away, here from %s:\n    ",
           blocked->owners[victim].label);
    if (!drawing_may_type(name)) {
        printf("hl_lock_force_release(), since the name cannot be typed\n");
        return;
    }
    printf("hirelock unlock ");
    drawing_options(drawing, name);
    drawing_word(name->bytes + name->prefix, name->length - name->prefix);
    putchar('\n');
}

static size_t drawing_circle_size(const struct cli_blocked *blocked, size_t owner)
{
    size_t size = 1;

    for (size_t at = drawing_follow(blocked, owner); at != owner; at = drawing_follow(blocked, at))
        size++;
    return size;
}

static void drawing_circle(struct drawing *drawing, size_t owner)
{
    const struct cli_blocked *blocked = drawing->blocked;
    size_t size = drawing_circle_size(blocked, owner), at = owner;

    printf("%sdeadlock%s: %zu owner%s for %s\n", drawing->has_colors ? "\033[1;31m" : "",
           drawing->has_colors ? "\033[0m" : "", size, size == 1 ? " waits" : "s wait",
           size == 1 ? "itself" : "each other");
    for (size_t i = 0; i < size && i < DRAWING_CIRCLE; i++, at = drawing_follow(blocked, at)) {
        printf("  %s holds ", blocked->owners[at].label);
        drawing_held(cli_blocked_lock_of(blocked, drawing_circle_to(blocked, at)));
        printf(" and waits for ");
        drawing_waits(blocked, blocked->owners[at].wait);
        putchar('\n');
        drawing->waits++;
        drawing_tree(drawing, at, "    ", 0);
    }
    if (size > DRAWING_CIRCLE)
        printf("  ... and %zu more owners of this circle\n", size - DRAWING_CIRCLE);
    drawing_advise(drawing, owner);
}

static const struct cli_blocked *drawing_sorted; /* qsort() has no argument for it */

static int drawing_compare(const void *left, const void *right)
{
    const struct cli_blocked_owner *a = &drawing_sorted->owners[*(const size_t *)left];
    const struct cli_blocked_owner *b = &drawing_sorted->owners[*(const size_t *)right];

    if (a->behind != b->behind)
        return a->behind > b->behind ? -1 : 1;
    return strcmp(a->label, b->label);
}

/* Owners that block others and wait for nobody. */
static size_t drawing_roots(const struct cli_blocked *blocked, size_t *roots)
{
    size_t child[DRAWING_CHILDREN], count = 0;

    for (size_t i = 0; i < blocked->owner_count; i++)
        if (blocked->owners[i].wait == CLI_NONE && drawing_children(blocked, i, child) > 0)
            roots[count++] = i;
    drawing_sorted = blocked;
    qsort(roots, count, sizeof(*roots), drawing_compare);
    return count;
}

static void drawing_trees(struct drawing *drawing)
{
    const struct cli_blocked *blocked = drawing->blocked;
    size_t *roots = calloc(blocked->owner_count + 1, sizeof(*roots));
    size_t count = roots ? drawing_roots(blocked, roots) : 0;

    for (size_t i = 0; i < count && i < DRAWING_TREES && drawing->waits < DRAWING_WAITS; i++) {
        printf("%s", blocked->owners[roots[i]].label);
        drawing_holds(blocked, roots[i], " holds ");
        putchar('\n');
        drawing_tree(drawing, roots[i], "", 0);
    }
    if (count > DRAWING_TREES)
        printf("... and %zu more owners that others wait for\n", count - DRAWING_TREES);
    free(roots);
}

void cli_draw(const struct cli_blocked *blocked, const struct cli_server *server)
{
    struct drawing drawing =
        strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? drawing_utf8 : drawing_plain;
    unsigned drawn = 0;
    size_t shown = 0;

    drawing.blocked = blocked;
    drawing.server = server;
    drawing.has_colors = cli_has_colors(STDOUT_FILENO);
    for (size_t i = 0; i < blocked->owner_count; i++) {
        const struct cli_blocked_owner *owner = &blocked->owners[i];
        if (owner->deadlock <= drawn || !blocked->waits[owner->wait].is_shown)
            continue;
        drawing_circle(&drawing, i); /* circles have their numbers in this order */
        drawn = owner->deadlock;
    }
    drawing_trees(&drawing);
    for (size_t i = 0; i < blocked->wait_count; i++)
        shown += blocked->waits[i].is_shown;
    if (shown > drawing.waits)
        printf("%zu of %zu waits are drawn; --json prints each\n", drawing.waits, shown);
}
