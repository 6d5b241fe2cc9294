/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/run/words.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_LEASE = 256,
    KEY_MIN_HOLD,
    KEY_MAX_HOLD,
    KEY_PERMITS,
    KEY_FAIR,
    KEY_FENCE,
    KEY_ON_LOST,
    KEY_KILL_AFTER,
    KEY_NO_SERVER,
    KEY_VERBOSE,
};

enum { WORDS_KILL_AFTER_MS = 5000 };

static const struct argp_option run_options[] = {
    {"nonblock", 'n', NULL, 0, "do not wait: status 124 if it is held", 0},
    {"timeout", 'w', "TIME", 0, "wait at most so long, then 124", 0},
    {"conflict-exit-code", 'E', "CODE", 0, "for 124", 0},
    {"shared", 's', NULL, 0, "a read lock: many may read", 0},
    {"exclusive", 'x', NULL, 0, "a write lock, beside -s of others", 0},
    {"command", 'c', "TEXT", 0, "give TEXT to the shell; no -- then", 0},
    {"no-fork", 'F', NULL, 0, "become COMMAND: for supervisors", 0},
    {"verbose", KEY_VERBOSE, NULL, 0, "say who held it, and for how long", 0},
    {"lease", KEY_LEASE, "TIME", 0, "free so long after this host dies (30)", 0},
    {"min-hold", KEY_MIN_HOLD, "TIME", 0, "keep it so long at least: for cron", 0},
    {"max-hold", KEY_MAX_HOLD, "TIME", 0, "it is lost after that time", 0},
    {"permits", KEY_PERMITS, "N", 0, "N at once, on all hosts together", 0},
    {"fair", KEY_FAIR, NULL, 0, "first come, first served", 0},
    {"fence", KEY_FENCE, NULL, 0, "a rising token in HIRELOCK_TOKEN", 0},
    {"on-lost", KEY_ON_LOST, "WHAT", 0, "term, kill, ignore, or a command (term)", 0},
    {"kill-after", KEY_KILL_AFTER, "TIME", 0, "KILL so long after TERM (5)", 0},
    {"no-server", KEY_NO_SERVER, "WHAT", 0, "fail, wait, or run without it (fail)", 0},
    {0}};

static int64_t words_time(struct argp_state *state, const char *word)
{
    int64_t ms = cli_read_time(word);

    if (ms < 0)
        argp_error(state, "'%s' is no time: 10, 1.5, 200ms, 5m", word);
    return ms;
}

/* A time that is not zero: zero would mean that the option is not given. */
static int64_t words_span(struct argp_state *state, const char *word)
{
    int64_t ms = words_time(state, word);

    if (ms == 0)
        argp_error(state, "'%s': longer than that, please", word);
    return ms;
}

static int64_t words_number(struct argp_state *state, const char *word, int64_t least, int64_t most)
{
    char *end;
    long long number = strtoll(word, &end, 10);

    if (end == word || *end || number < least || number > most)
        argp_error(state, "'%s' is no number from %lld to %lld", word, (long long)least,
                   (long long)most);
    return number;
}

static void words_on_lost(struct run_words *words, char *word)
{
    static const char *const names[] = {"term", "kill", "ignore"};

    words->lost = RUN_LOST_COMMAND;
    words->lost_command = word;
    for (int i = 0; i < RUN_LOST_COMMAND; i++)
        if (strcmp(word, names[i]) == 0)
            words->lost = (enum run_lost)i;
}

static void words_no_server(struct argp_state *state, struct run_words *words, const char *word)
{
    static const char *const names[] = {"fail", "wait", "run"};

    for (int i = 0; i < 3; i++)
        if (strcmp(word, names[i]) == 0) {
            words->no_server = (enum run_no_server)i;
            return;
        }
    argp_error(state, "--no-server=%s: fail, wait or run, please", word);
}

static void words_shell(struct run_words *words, char *text)
{
    static char sh[] = "/bin/sh", dash_c[] = "-c";
    char *shell = getenv("SHELL");

    words->shell[0] = shell && shell[0] ? shell : sh;
    words->shell[1] = dash_c;
    words->shell[2] = text;
}

static void words_argument(struct run_words *words, char *word, struct argp_state *state)
{
    if (state->quoted && state->next > state->quoted) {
        words->command = &state->argv[state->next - 1];
        state->next = state->argc;
    } else if (words->name_count == RUN_NAMES) {
        argp_error(state, "more than %d NAMEs", RUN_NAMES);
    } else {
        words->names[words->name_count++] = word;
    }
}

static void words_check_permits(struct argp_state *state, const struct run_words *words)
{
    if (words->name_count > 1)
        argp_error(state, "--permits is for one NAME");
    if (words->is_read || words->is_write || words->is_fair || words->is_fenced)
        argp_error(state, "--permits is no lock: without -s, -x, --fair and --fence, please");
    if (words->min_hold_ms > 0)
        argp_error(state, "--permits has no --min-hold: a permit comes back when it is given back");
}

static void words_check_kind(struct argp_state *state, const struct run_words *words)
{
    if (words->is_read + words->is_write + words->is_fair + words->is_fenced > 1)
        argp_error(state, "one of -s, -x, --fair and --fence: they are kinds of locks");
    if (words->is_fenced && words->name_count > 1)
        argp_error(state, "--fence is for one NAME, since HIRELOCK_TOKEN is one token");
    if (words->max_hold_ms > 0 && words->min_hold_ms > words->max_hold_ms)
        argp_error(state, "--min-hold is longer than --max-hold");
    if (words->wait_ms == HL_NO_WAIT && words->no_server == RUN_NO_SERVER_WAIT)
        argp_error(state, "-n does not wait, and --no-server=wait does: one of them, please");
}

static void words_check(struct argp_state *state, struct run_words *words)
{
    if (words->name_count == 0)
        argp_error(state, "which NAME?");
    if (words->shell[2] && words->command)
        argp_error(state, "-c or -- COMMAND: one of them, please");
    if (words->shell[2])
        words->command = words->shell;
    if (!words->command)
        argp_error(state, "which COMMAND? It stands behind --, as in: %s NAME -- COMMAND",
                   state->name);
    if (words->permits > 0)
        words_check_permits(state, words);
    words_check_kind(state, words);
}

static error_t words_parse_time(int key, const char *word, struct argp_state *state)
{
    struct run_words *words = state->input;

    switch (key) {
    case 'w':
        words->wait_ms = words_time(state, word);
        return 0;
    case KEY_LEASE:
        words->lease_ms = words_span(state, word);
        return 0;
    case KEY_MIN_HOLD:
        words->min_hold_ms = words_span(state, word);
        return 0;
    case KEY_MAX_HOLD:
        words->max_hold_ms = words_span(state, word);
        return 0;
    case KEY_KILL_AFTER:
        words->kill_after_ms = words_time(state, word);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t words_parse_flag(int key, struct run_words *words)
{
    switch (key) {
    case 'n':
        words->wait_ms = HL_NO_WAIT;
        return 0;
    case 's':
        words->is_read = true;
        return 0;
    case 'x':
        words->is_write = true;
        return 0;
    case 'F':
        words->is_here = true;
        return 0;
    case KEY_FAIR:
        words->is_fair = true;
        return 0;
    case KEY_FENCE:
        words->is_fenced = true;
        return 0;
    case KEY_VERBOSE:
        words->is_verbose = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t words_parse(int key, char *word, struct argp_state *state)
{
    struct run_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case ARGP_KEY_ARG:
        words_argument(words, word, state);
        return 0;
    case ARGP_KEY_END:
        words_check(state, words);
        return 0;
    case 'E':
        words->conflict_status = (int)words_number(state, word, 0, 255);
        return 0;
    case 'c':
        words_shell(words, word);
        return 0;
    case KEY_PERMITS:
        words->permits = words_number(state, word, 1, HL_PERMITS_MAX);
        return 0;
    case KEY_ON_LOST:
        words_on_lost(words, word);
        return 0;
    case KEY_NO_SERVER:
        words_no_server(state, words, word);
        return 0;
    default:
        return words_parse_flag(key, words) == 0 ? 0 : words_parse_time(key, word, state);
    }
}

static const struct argp_child run_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};

const struct argp run_argp = {
    .options = run_options,
    .parser = words_parse,
    .args_doc = "NAME... -- COMMAND [ARG...]\nNAME... -c TEXT",
    .doc = "Runs COMMAND while it holds the lock NAME, or all NAMEs; its status is COMMAND's."
           "\vStatus: 122 lost, 123 no server, 124 held, 125 other failure, 128+n signal n.\n"
           "The lock is released when COMMAND ends: what it left behind goes on.\n"
           "Stopped (Ctrl-Z), COMMAND keeps the lock. When this is killed, so is COMMAND.\n"
           "  hirelock run -n --min-hold 60 nightly -- backup --all\n"
           "  hirelock run -w 30 --permits 3 -c 'convert *.png' images",
    .children = run_children};

void run_words_read(struct run_words *words, int argc, char **argv)
{
    *words = (struct run_words){.wait_ms = HL_WAIT_FOREVER,
                                .kill_after_ms = WORDS_KILL_AFTER_MS,
                                .conflict_status = CLI_CONFLICT};
    cli_parse(&cli_run, argc, argv, words);
}
