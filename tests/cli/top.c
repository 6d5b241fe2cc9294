/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* hirelock top: what it shows, and what each key does. */

#include "cli/top_kit.h"

enum { TOP_FIRST = 3, TOP_FOOTER = 23 }; /* lines of the screen: the first lock, the keys */

static hl_client *waiting[16];
static int waiting_count;

/* Others wait for it, each with a client of its own. */
static void add_waiters(const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        hl_client *client = waiting[waiting_count++] = open_client(NULL);
        actor_start_acquire(new_kind(client, name, HL_LOCK_REENTRANT),
                            ACQUIRE(.wait_ms = HL_WAIT_FOREVER));
    }
    check(redis_wait_int(server, count, 20000, "ZCARD hirelock_queue:{%s}", name));
}

/* Their waits end with their clients. */
static void end_waiters(void)
{
    while (waiting_count > 0)
        close_client(waiting[--waiting_count]);
}

/* A lock as Redisson writes it: of its owner of this number. */
static void add_lock(const char *name, int owner)
{
    redis_do(server, "DEL %s", name);
    redis_do(server, "HSET %s " JAVA ":%d 1", name, owner);
    redis_do(server, "PEXPIRE %s 600000", name);
}

TopLaw(top, shows_the_most_contended_first)
{
    static const char *const names[] = {"area", "bay", "cask"};
    hl_client *client = open_client(CLIENT(.flags = HL_CLIENT_HOLDER_INFO));
    char host[65] = "", holder[128];

    for (int i = 0; i < 3; i++)
        expect_ok(hl_lock_acquire(new_kind(client, names[i], HL_LOCK_REENTRANT), ERR));
    add_waiters("bay", 1);
    add_waiters("cask", 2);
    check(redis_wait_int(server, 1, 20000, "EXISTS hirelock_holder:{cask}"));
    top_start("");
    top_await_line(1, "3 locks of ");
    top_await_line(1, ", 2 waited for; by waiters");
    top_await_line(TOP_FIRST, "cask");
    top_await_line(TOP_FIRST + 1, "bay");
    top_await_line(TOP_FIRST + 2, "area");
    top_await_line(TOP_FIRST, " 2 ");
    top_await_line(0, "connected");
    gethostname(host, sizeof host - 1);
    snprintf(holder, sizeof holder, " %.3s", host);
    top_await_line(TOP_FIRST, holder);
    add_waiters("area", 3); /* and the order changes with them */
    top_await_line(TOP_FIRST, "area");
    end_waiters();
}

TopLaw(top, of_a_lock_says_what_inspect_says_and_goes_on_looking)
{
    add_lock("stock", 7);
    top_start("");
    top_await_line(TOP_FIRST, "stock");
    top_press("Enter");
    top_await("owner        " JAVA ":7");
    top_await("lease left ");
    top_await("OWNER  ");
    add_lock("stock", 8);
    top_await("owner        " JAVA ":8");
    redis_do(server, "DEL stock");
    top_await("It is free.");
    top_press("q");
    top_await("0 locks of"); /* it keeps its place for a while */
}

static void expect_asked(int owner)
{
    char text[128];

    top_press("u");
    top_await_line(TOP_FOOTER, "Take it away? [y/N]");
    snprintf(text, sizeof text, "'stock' (lock) is held by " JAVA ":%d; 0", owner);
    check_has(top_look(false), text);
}

TopLaw(top, takes_a_lock_from_the_owner_that_it_has_named)
{
    add_lock("stock", 45);
    top_start("");
    top_await_line(TOP_FIRST, "stock");
    expect_asked(45);
    top_press("n");
    top_await_line(TOP_FOOTER, "nothing was done");
    check_int(redis_int(server, "EXISTS stock"), 1);
    expect_asked(45);
    add_lock("stock", 46);
    top_press("y");
    top_await_line(TOP_FOOTER, "another owner by now");
    check_int(redis_int(server, "HEXISTS stock " JAVA ":46"), 1);
    expect_asked(46);
    top_press("y");
    top_await_line(TOP_FOOTER, "'stock' was taken away");
    check_int(redis_int(server, "EXISTS stock"), 0);
    top_press("u");
    top_await_line(TOP_FOOTER, "nobody holds it");
}

TopLaw(top, takes_nothing_away_that_is_no_lock)
{
    redis_do(server, "SET seats 1");
    redis_do(server, "ZADD {seats}:timeout 9000000000000 0123456789abcdef");
    top_start("");
    top_await_line(TOP_FIRST, "permits");
    top_press("u");
    top_await_line(TOP_FOOTER, "given back by its id");
    check_int(redis_int(server, "EXISTS seats"), 1);
}

/* Is the letter at this place in reverse? Sequences set it on (7) and off (27, or all: 0). */
static bool is_reversed(const char *text, const char *place)
{
    bool is_on = false;

    for (const char *at = text; at < place; at++) {
        if (strncmp(at, "\x1b[", 2) != 0)
            continue;
        for (at++; *at && *at != 'm'; at += strcspn(at, ";m")) {
            long number = strtol(at + 1, (char **)&at, 10);
            is_on = number == 7 || (is_on && number != 27 && number != 0);
        }
    }
    return is_on;
}

/* The line of this lock is in reverse, soon. */
static void expect_selected(const char *name)
{
    struct deadline deadline = deadline_of_wait(TOP_LONG_MS);
    bool is_selected = false;

    while (!is_selected && !deadline_is_over(deadline)) {
        const char *at = strstr(top_look(true), name);
        is_selected = at && is_reversed(top_screen, at);
    }
    check_msg(is_selected, "%s is not selected:\n%s", name, top_screen);
}

static void add_locks(int count)
{
    char name[16];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "lock%02d", i);
        add_lock(name, i);
    }
}

TopLaw(top, moves_by_keys)
{
    add_locks(60);
    top_start("--sort name");
    top_await_line(1, "60 locks");
    expect_selected("lock00");
    top_press("j", "j", "k", "Down");
    expect_selected("lock02");
    top_press("Up");
    expect_selected("lock01");
    top_press("NPage");
    expect_selected("lock21");
    top_press("End");
    expect_selected("lock59");
    top_press("PPage");
    expect_selected("lock39");
    top_press("Home");
    expect_selected("lock00");
    top_press("G");
    expect_selected("lock59");
    top_press("g");
    expect_selected("lock00");
}

TopLaw(top, keeps_the_selected_lock_when_the_order_changes)
{
    add_locks(5);
    top_start("");
    top_await_line(TOP_FIRST + 4, "lock04");
    top_press("Home"); /* the lock that was seen first need not be the first */
    expect_selected("lock00");
    top_press("j");
    expect_selected("lock01");
    top_press("j");
    expect_selected("lock02");
    add_waiters("lock04", 1);
    add_waiters("lock02", 2);
    top_await_line(TOP_FIRST, "lock02");
    top_await_line(TOP_FIRST + 1, "lock04");
    expect_selected("lock02");
    top_press("j");
    expect_selected("lock04");
    end_waiters();
}

TopLaw(top, sorts_by_each_column)
{
    static const char *const keys[] = {"name",  "kind",    "holder",  "held",
                                       "lease", "waiters", "longest", "owners"};
    char key[2] = "1", by[16];

    add_lock("area", 9);
    add_lock("bay", 1);
    redis_do(server, "PEXPIRE bay 900000");
    top_start("");
    top_await_line(1, "by waiters");
    for (int i = 0; i < 8; i++, key[0]++) {
        top_press(key);
        snprintf(by, sizeof by, "by %s", keys[i]);
        top_await_line(1, by);
    }
    top_press("s");
    top_await_line(1, "by name");
    top_await_line(TOP_FIRST, "area");
    top_press("r");
    top_await_line(1, "by name, reversed");
    top_await_line(TOP_FIRST, "bay");
    top_press(">");
    top_await_line(1, "by kind");
    top_press(">");
    top_await_line(TOP_FIRST, "bay"); /* whose owner is 1 */
    top_press("<", "<", "<");
    top_await_line(1, "by owners");
    top_press("5");
    top_await_line(TOP_FIRST, "area"); /* its lease ends first */
}

TopLaw(top, filters_by_a_part_of_the_name_or_a_pattern)
{
    add_lock("stock:1", 1);
    add_lock("stock:2", 2);
    add_lock("\xc3\xa4rger", 3);
    top_start("");
    top_await_line(1, "3 locks");
    top_press("/");
    top_type("tock:");
    top_await_line(TOP_FOOTER, "/tock:_");
    top_await_line(1, "2 of 3 locks");
    top_type("2");
    top_await_line(1, "1 of 3 locks");
    top_press("Enter");
    top_await_line(1, "filter tock:2");
    top_await_line(TOP_FIRST, "stock:2");
    top_press("Escape");
    top_await_line(1, "3 locks");
    top_press("/");
    top_type("*:[13]");
    top_await_line(1, "1 of 3 locks");
    top_press("C-u");
    top_type("\xc3\xa4x");
    top_await_line(1, "0 of 3 locks");
    top_press("BSpace");
    top_await_line(1, "1 of 3 locks");
    top_await_line(TOP_FIRST, "\xc3\xa4rger");
    top_press("BSpace");
    top_await_line(TOP_FOOTER, "/_");
    top_press("Escape");
    top_await_line(TOP_FOOTER, "q quit");
}

TopLaw(top, holds_the_picture_while_it_is_paused)
{
    add_lock("area", 1);
    top_start("--interval 100ms");
    top_await_line(TOP_FIRST, "area");
    top_press("Space");
    top_await_line(1, "paused");
    redis_do(server, "DEL area");
    add_lock("bay", 2);
    top_press("?"); /* the picture is drawn anew behind the page */
    top_await("takes this lock from its owner");
    top_press("Escape");
    top_await_line(TOP_FIRST, "area");
    check_str(top_line(TOP_FIRST + 1), "");
    top_press("Space");
    top_await("bay");
    top_await_gone("area");
}

TopLaw(top, has_a_page_of_its_keys)
{
    add_lock("area", 1);
    top_start("");
    top_press("?");
    top_await("takes this lock from its owner");
    top_resize("80", "12");
    top_press("End");
    top_await("Tokens of fenced locks");
    top_press("g");
    top_await("one lock up, down");
    top_press("Escape");
    top_await("WAITERS");
    top_await("area");
    top_press("h");
    top_await("one lock up, down");
    top_press("q", "q");
    top_await("status 0");
}

TopLaw(top, takes_a_pattern_and_a_prefix)
{
    add_lock("app[1]:stock", 1);
    add_lock("app[1]:shelf", 2);
    add_lock("app1:stock", 3);
    top_start("--prefix 'app[1]:' 's*'");
    top_await_line(1, "2 locks");
    top_await_line(TOP_FIRST, "shelf ");
    top_await_line(TOP_FIRST + 1, "stock ");
    check(strstr(top_line(TOP_FIRST), "app") == NULL);
    top_press("u");
    top_await("'shelf' (lock) is held by");
    top_press("y");
    top_await_line(TOP_FOOTER, "'shelf' was taken away");
    check_int(redis_int(server, "EXISTS app[1]:shelf"), 0);
}

TopLaw(top, drops_columns_and_cuts_names_where_there_is_no_room)
{
    add_lock("a-very-long-name-that-has-no-room", 1);
    add_lock("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe5\x90\x8d\xe5\x89\x8d\xe3\x81\xa7",
             2); /* seven letters of two columns */
    top_start("");
    top_await_line(2, "NAME");
    top_await_line(2, "KIND");
    top_await_line(2, "OWNERS/S");
    top_resize("40", "10");
    top_await_line(2, "NAME         HOLDER     WAITERS  LONGEST");
    top_await_line(TOP_FIRST, "a-very-long\xe2\x80\xa6 ");
    /* Five of its letters, a mark, and a space in the place of half a letter. */
    top_await_line(TOP_FIRST + 1, "\xe3\x81\xae\xe5\x90\x8d\xe2\x80\xa6  0f1e2d3c");
    top_resize("9", "3");
    top_resize("1", "1");
    top_resize("200", "24");
    top_await_line(TOP_FIRST, "a-very-long-name-that-has-no-room");
    top_await_line(TOP_FIRST, JAVA ":1 ");
}

TopLaw(top, escapes_what_a_terminal_would_obey)
{
    redis_do(server, "HSET %b " JAVA ":1 1", "a\x1b[2J\xff\n\xc3\xa4\xc2\x9b c", (size_t)13);
    top_start("");
    top_resize("160", "24");
    top_await_line(TOP_FIRST, "a\\x1b[2J\\xff\\x0a\xc3\xa4\\xc2\\x9b c");
    top_press("Enter");
    top_await_line(2, "a\\x1b[2J");
    top_await("name         a\\x1b[2J");
    top_press("q"); /* a look at the lock may be about to begin */
    top_await("WAITERS");
    top_press("u");
    top_await("'a\\x1b[2J");
    top_press("y");
    top_await("was taken away");
    check_int(redis_int(server, "DBSIZE"), 0);
}

/* Into the queue of area, since so many seconds. */
static void add_place(const char *client, int seconds)
{
    static const char script[] =
        "local time = redis.call('TIME')\n"
        "local arrival = string.format('%.0f', (time[1] - ARGV[2]) * 1000000 + time[2])\n"
        "return redis.call('ZADD', KEYS[1], arrival, ARGV[1])";

    check_int(redis_int(server, "EVAL %s 1 hirelock_queue:{area} %s %d", script, client, seconds),
              1);
}

TopLaw(top, tells_how_long_the_first_of_the_queue_is_there)
{
    add_lock("area", 1);
    add_place("older", 7200);
    add_place("newer", 3600);
    top_start("");
    top_await_line(TOP_FIRST, " 2    2h00m");
    redis_do(server, "ZREM hirelock_queue:{area} older"); /* and the owner stays */
    top_await_line(TOP_FIRST, " 1    1h00m");
    redis_do(server, "RPUSH redisson_lock_queue:{area} fair"); /* whose place tells no time */
    top_await_line(TOP_FIRST, " 2      ");
    check(strstr(top_line(TOP_FIRST), "h00m") == NULL);
}

TopLaw(top, counts_the_tokens_of_a_fenced_lock)
{
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_kind(client, "fenced", HL_LOCK_FENCED);
    struct deadline deadline = deadline_of_wait(TOP_LONG_MS);
    double pace = 0;

    expect_ok(hl_lock_acquire(lock, ERR));
    top_start("");
    top_await_line(TOP_FIRST, "fenced");
    top_await_line(TOP_FIRST, " 0.0");
    while (pace < 5 && !deadline_is_over(deadline)) { /* more than there are surveys */
        for (int i = 0; i < 100; i++) {
            expect_ok(hl_lock_release(lock, ERR));
            expect_ok(hl_lock_acquire(lock, ERR));
        }
        const char *last = strrchr(top_line(TOP_FIRST), ' ');
        pace = last ? strtod(last + 1, NULL) : 0;
    }
    check_msg(pace >= 5, "%s", top_line(TOP_FIRST));
}

TopLaw(top, says_that_a_count_of_changes_is_the_least)
{
    struct deadline deadline = deadline_of_wait(TOP_LONG_MS);
    int owner = 1;

    add_lock("area", owner);
    top_start("");
    top_await_line(TOP_FIRST, "area");
    const char *last = NULL;
    do {
        add_lock("area", ++owner);
        last = strrchr(top_line(TOP_FIRST), ' ');
    } while (!(last && strncmp(last, " >=", 3) == 0) && !deadline_is_over(deadline));
    check_msg(last && strncmp(last, " >=", 3) == 0, "%s", top_line(TOP_FIRST));
}

TopLaw(top, shows_strings_only_if_it_is_asked_for_them)
{
    redis_do(server, "SET classic f00d PX 600000");
    add_lock("area", 1);
    top_start("--classic");
    top_await_line(1, "2 locks");
    top_press("j");
    expect_selected("classic");
    top_press("u");
    top_await("'classic' (value) is held by f00d");
    top_press("y");
    top_await_line(TOP_FOOTER, "'classic' was taken away");
    check_int(redis_int(server, "EXISTS classic"), 0);
}
