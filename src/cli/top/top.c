/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock top [PATTERN]: a live picture of the locks.
 *
 *     keys, signals -> desk -> screen           this thread
 *                       |
 *                      store <- observer        threads of the surveys and of the callbacks
 *                       |
 *                    errands                    a thread: what has to be waited for
 */
#include "cli/survey.h"
#include "cli/top/desk.h"
#include "cli/top/ending.h"
#include "cli/top/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    TOP_REFRESH_MS = 1000,
    TOP_LEAST_MS = 100,
    TOP_GLANCE_MS = 100,  /* between two looks at the locks on the screen */
    TOP_OUTAGE_MS = 1500, /* the longest that the end waits for a server that is away */
    TOP_KEY_CLASSIC = 1,
    TOP_KEY_SORT
};

struct top_words {
    struct cli_server server;
    const char *pattern;
    int64_t interval_ms;
    enum top_column column;
    bool has_values;
};

static void top_take_sort(struct top_words *words, const char *word, struct argp_state *state)
{
    char keys[128] = "";

    words->column = top_column_find(word);
    if (words->column < TOP_COLUMNS)
        return;
    for (size_t i = 0; i < TOP_COLUMNS; i++) {
        size_t used = strlen(keys);
        snprintf(keys + used, sizeof(keys) - used, "%s%s", i ? ", " : "", top_columns[i].key);
    }
    argp_error(state, "'%s' is no column: %s", word, keys);
}

static error_t top_parse(int key, char *word, struct argp_state *state)
{
    struct top_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case TOP_KEY_CLASSIC:
        words->has_values = true;
        return 0;
    case TOP_KEY_SORT:
        top_take_sort(words, word, state);
        return 0;
    case 'i':
        words->interval_ms = cli_read_time(word);
        if (words->interval_ms < TOP_LEAST_MS)
            argp_error(state, "'%s' is no time from 100ms on: 1, 0.5, 200ms", word);
        return 0;
    default:
        return cli_take_pattern(&words->pattern, key, word, state);
    }
}

static const struct argp_option top_options[] = {
    {"classic", TOP_KEY_CLASSIC, NULL, 0, "strings with an expiry, too: locks by SET NX", 0},
    {"interval", 'i', "SECONDS", 0, "how often the picture changes; 1", 0},
    {"sort", TOP_KEY_SORT, "COLUMN", 0, "waiters; name, kind, holder, held, lease, longest, owners",
     0},
    {0}};
static const struct argp_child top_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp top_argp = {
    .options = top_options,
    .parser = top_parse,
    .args_doc = "[PATTERN]",
    .doc =
        "Shows the locks that are held, on all nodes, the most contended first, until q is typed; "
        "? lists the keys. PATTERN is that of Redis's SCAN.\v"
        "Examples:\n"
        "  hirelock top\n"
        "  hirelock top --sort longest 'stock:*'\n\n"
        "It looks ten times a second at the locks on the screen, and at all others by surveys, "
        "one after the other, which take a fifth of the time. OWNERS/S counts the changes of the "
        "owner that looks have seen: >= means that most of them saw one, and that there may have "
        "been many more; tokens of a fenced lock are counted by the server. LONGEST is how long "
        "the client that is first in the lock's queue has been there.",
    .children = top_children};

/* All that runs while the picture is shown. */
struct top {
    struct top_store store;
    struct top_observer observer;
    struct top_errands errands;
    struct top_desk desk;
    int64_t interval_ms, refreshed_ms, glanced_ms;
    int signals; /* a signalfd: stopped, continued, another size */
};

static void top_block_signals(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGTSTP);
    sigaddset(ret_signals, SIGCONT);
    sigaddset(ret_signals, SIGWINCH);
    sigprocmask(SIG_BLOCK, ret_signals, NULL);
}

static void top_take_signal(struct top *top)
{
    struct signalfd_siginfo info;

    if (read(top->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGTSTP)
        top_screen_stop();
    else
        top_screen_again();
}

static void top_take_keys(struct top *top)
{
    for (int key = top_screen_key(); key != TOP_KEY_NONE; key = top_screen_key())
        top_desk_key(&top->desk, key);
    top->refreshed_ms = 0;
}

/* What is seen comes to the screen once in each interval, and at first as soon as it is there. */
static bool top_is_due(const struct top *top, int64_t now_ms)
{
    bool is_empty = top->desk.order.count == 0;

    return now_ms - top->refreshed_ms >= (is_empty ? TOP_GLANCE_MS : top->interval_ms);
}

static void top_tick(struct top *top)
{
    int64_t now_ms = cli_now_ms();

    if (top_is_due(top, now_ms)) {
        top_desk_refresh(&top->desk);
        top_desk_draw(&top->desk);
        top->refreshed_ms = now_ms;
    }
    if (now_ms - top->glanced_ms >= TOP_GLANCE_MS) {
        top_desk_glance(&top->desk);
        top->glanced_ms = now_ms;
    }
}

/* Until the user ends it, or a signal does, or the terminal is gone. */
static void top_show(struct top *top)
{
    enum { KEYS, SIGNALS, BELL };
    struct pollfd ready[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = top->signals, .events = POLLIN},
        {.fd = top->errands.bell, .events = POLLIN},
    };

    while (!top->desk.is_over && top_ending_signal() == 0 &&
           !(ready[KEYS].revents & (POLLHUP | POLLERR | POLLNVAL))) {
        top_tick(top);
        if (poll(ready, 3, TOP_GLANCE_MS) <= 0)
            continue;
        if (ready[SIGNALS].revents)
            top_take_signal(top);
        if (ready[BELL].revents)
            top_desk_hear(&top->desk);
        if (ready[KEYS].revents & POLLIN)
            top_take_keys(top);
        if (ready[SIGNALS].revents || ready[BELL].revents)
            top_desk_draw(&top->desk);
    }
}

static int top_on_screen(struct top *top, const struct top_words *words)
{
    int status = top_screen_open();

    if (status != CLI_OK)
        return status;
    top_desk_init(&top->desk, &top->store, &top->observer, &top->errands);
    top->desk.order.column = words->column;
    top_show(top);
    top_screen_close();
    top_desk_deinit(&top->desk);
    return CLI_OK;
}

static int top_with_threads(struct top *top, const struct top_words *words)
{
    int status = CLI_FAILED;

    if (!top_errands_start(&top->errands, top->observer.client, words->has_values)) {
        cli_say("no thread can be started");
        return CLI_FAILED;
    }
    if (top_observer_start(&top->observer)) {
        status = top_on_screen(top, words);
        top_observer_stop(&top->observer);
    } else {
        cli_say("no thread can be started");
    }
    top_errands_stop(&top->errands);
    return status;
}

static int top_show_names(struct top *top, struct top_words *words)
{
    char *pattern = cli_survey_pattern(&words->server, words->pattern);
    int status = CLI_FAILED;

    top->observer.pattern = pattern;
    top->observer.prefix = strlen(words->server.prefix);
    if (pattern)
        status = top_with_threads(top, words);
    free(pattern);
    return status;
}

static int top_open(struct top *top, struct top_words *words)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;

    options.outage_timeout_ms = TOP_OUTAGE_MS;
    top_store_init(&top->store);
    top_observer_init(&top->observer, &top->store);
    top->observer.has_values = words->has_values;
    int status = cli_server_open(&words->server, &options, &top->observer.client);
    if (status == CLI_OK)
        status = top_show_names(top, words);
    cli_server_close(&words->server, top->observer.client);
    top_observer_deinit(&top->observer);
    top_store_deinit(&top->store);
    return status;
}

static int top_has_terminal(void)
{
    if (!isatty(STDOUT_FILENO)) {
        cli_say("standard output is no terminal; hirelock list prints the locks");
        return CLI_FAILED;
    }
    if (!isatty(STDIN_FILENO)) {
        cli_say("standard input is no terminal, so there are no keys; hirelock list prints the "
                "locks");
        return CLI_FAILED;
    }
    return CLI_OK;
}

static int top_run(int argc, char **argv)
{
    struct top_words words = {.interval_ms = TOP_REFRESH_MS, .column = TOP_WAITERS};
    struct top *top = calloc(1, sizeof(*top));
    sigset_t signals;

    cli_parse(&cli_top, argc, argv, &words);
    int status = top ? top_has_terminal() : CLI_FAILED;
    if (status == CLI_OK) {
        top_ending_begin();
        top_block_signals(&signals);
        top->interval_ms = words.interval_ms;
        top->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        status = top_open(top, &words);
        close(top->signals);
    }
    cli_server_close(&words.server, NULL);
    free(top);
    if (top_ending_signal() != 0)
        top_ending_die();
    return status;
}

const struct cli_command cli_top = {.name = "top",
                                    .summary = "show the locks live, the most contended first",
                                    .argp = &top_argp,
                                    .run = top_run};
