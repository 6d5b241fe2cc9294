/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock acl: the rule by which a user of the server may run the library, and no more than that.
 */
#include "cli/rights.h"
#include "cli/server.h"

#include <hirelock/command.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACL_KEY_USER = 1,
    ACL_KEY_BRACES,
    ACL_KEY_HOLDER,
    ACL_KEY_GRACE,
    ACL_KEY_OPERATOR,
    ACL_KEY_REPLICAS,
    ACL_KEY_SENTINELS,
    ACL_LISTS = 24,
    ACL_WORD = 1200
};

struct acl_words {
    struct cli_server server;
    const char *user;
    bool has_braces, has_holder, has_grace, has_replicas, is_for_operator, is_for_sentinels;
};

/* Patterns of ACL SETUSER are words without spaces, and redis-cli takes quotes for its own. */
static bool acl_is_word(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || strchr("\x7f\"'", *text))
            return false;
    return true;
}

static void acl_check(const struct acl_words *words, struct argp_state *state)
{
    if (!acl_is_word(words->user) || !words->user[0])
        argp_error(state, "'%s' is no user's name", words->user);
    if (words->server.prefix &&
        (!acl_is_word(words->server.prefix) || strlen(words->server.prefix) > 500))
        argp_error(state, "a rule has no prefix with spaces, quotes or more than 500 letters");
}

static error_t acl_parse(int key, char *word, struct argp_state *state)
{
    struct acl_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case ACL_KEY_USER:
        words->user = word;
        return 0;
    case ACL_KEY_BRACES:
        words->has_braces = true;
        return 0;
    case ACL_KEY_HOLDER:
        words->has_holder = true;
        return 0;
    case ACL_KEY_GRACE:
        words->has_grace = true;
        return 0;
    case ACL_KEY_OPERATOR:
        words->is_for_operator = true;
        return 0;
    case ACL_KEY_REPLICAS:
        words->has_replicas = true;
        return 0;
    case ACL_KEY_SENTINELS:
        words->is_for_sentinels = true;
        return 0;
    case ARGP_KEY_END:
        acl_check(words, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option acl_options[] = {
    {"braces", ACL_KEY_BRACES, NULL, 0, "for names with a '{' of their own, too", 0},
    {"grace", ACL_KEY_GRACE, NULL, 0, "for failover_grace_ms", 0},
    {"holder-info", ACL_KEY_HOLDER, NULL, 0, "for HL_CLIENT_HOLDER_INFO", 0},
    {"operator", ACL_KEY_OPERATOR, NULL, 0, "for list, inspect, unlock, doctor and the like", 0},
    {"replicas", ACL_KEY_REPLICAS, NULL, 0, "for min_replicas", 0},
    {"sentinels", ACL_KEY_SENTINELS, NULL, 0, "the rule for the sentinels", 0},
    {"user", ACL_KEY_USER, "NAME", 0, "the user; locker", 0},
    {0}};
static const struct argp_child acl_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp acl_argp = {
    .options = acl_options,
    .parser = acl_parse,
    .doc = "Prints the ACL SETUSER command for a user who may lock names that begin with the "
           "--prefix, and may do no more than that.\v"
           "Examples:\n"
           "  hirelock acl --prefix lock: --user locker | redis-cli\n"
           "  hirelock acl --operator --user operator --url redis-cluster://10.0.0.1\n\n"
           "The rule sets no password, and keeps that of a user who has one: ACL SETUSER locker "
           "'>...' sets it. The URL says whether it is for one server, Sentinel or a cluster; a "
           "cluster is asked whether its messages are sharded. Redis does not replicate users: "
           "give the rule to each node. Keys that hl_fence_set() guards need rights of their own.",
    .children = acl_children};

/* The rule, word by word. */
struct acl_rule {
    const struct acl_words *words;
    const char *const *lists[ACL_LISTS];
    size_t count;
};

static void acl_add(struct acl_rule *rule, const char *const *rights)
{
    rule->lists[rule->count++] = rights;
}

static void acl_add_kinds(struct acl_rule *rule)
{
    static const char *const *const kinds[] = {lock_rights,   fenced_rights,  fair_rights,
                                               rw_rights,     redlock_rights, semaphore_rights,
                                               permit_rights, latch_rights};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        acl_add(rule, kinds[i]);
    if (rule->words->has_holder)
        acl_add(rule, holder_rights);
    if (rule->words->has_grace)
        acl_add(rule, grace_rights);
    if (rule->words->has_replicas)
        acl_add(rule, replicas_rights);
    if (rule->words->is_for_operator)
        acl_add(rule, operator_rights);
}

/* Has an earlier place of the lists the same right? */
static bool acl_has_before(const struct acl_rule *rule, size_t list, const char *const *right)
{
    for (size_t i = 0; i <= list; i++)
        for (const char *const *other = rule->lists[i]; *other && other != right; other++)
            if (strcmp(*other, *right) == 0)
                return true;
    return false;
}

/* Letters of a prefix that would mean more in a pattern mean themselves. */
static void acl_print_pattern(const char *begin, size_t length, const char *prefix)
{
    printf(" %.*s", (int)length, begin);
    for (; *prefix; prefix++)
        printf("%s%c", strchr("*?[]\\^", *prefix) ? "\\" : "", *prefix);
    putchar('*');
}

/* "~hirelock_queue:{lock:*" stands for this prefix, in braces if it has none of its own. */
static void acl_print_right(const struct acl_words *words, const char *right)
{
    static const char ending[] = "lock:*";
    const char *prefix = words->server.prefix ? words->server.prefix : "";
    size_t length = strlen(right), begin = length < strlen(ending) ? 0 : length - strlen(ending);
    bool is_end = begin > 0 && strcmp(right + begin, ending) == 0;
    bool is_braced = is_end && right[begin - 1] == '{';
    bool has_brace = strchr(prefix, '{') != NULL;

    if (!is_braced && !(is_end && begin == 1)) {
        printf(" %s", right);
        return;
    }
    if (!is_braced || !has_brace)
        acl_print_pattern(right, begin, prefix);
    if (is_braced && (has_brace || words->has_braces))
        acl_print_pattern(right, begin - 1, prefix);
}

static void acl_print_rights(const struct acl_rule *rule, char kind)
{
    for (size_t i = 0; i < rule->count; i++)
        for (const char *const *right = rule->lists[i]; *right; right++)
            if ((*right)[0] == kind && !acl_has_before(rule, i, right))
                acl_print_right(rule->words, *right);
}

/* Without a prefix the names are all keys, and Redis refuses a pattern behind that of all. */
static void acl_print_keys(const struct acl_rule *rule)
{
    const char *prefix = rule->words->server.prefix;
    bool is_for_all = !rule->words->is_for_sentinels && !(prefix && prefix[0]);

    if (is_for_all)
        printf(" ~*");
    else
        acl_print_rights(rule, '~');
}

static void acl_print(const struct acl_rule *rule)
{
    printf("ACL SETUSER %s on resetkeys", rule->words->user);
    acl_print_keys(rule);
    printf(" resetchannels");
    acl_print_rights(rule, '&');
    printf(" -@all");
    acl_print_rights(rule, '+');
    putchar('\n');
}

/* As the library finds it out: PUBSUB SHARDNUMSUB is new in Redis 7. */
static int acl_ask_messages(const struct acl_words *words, const char *const **ret_rights)
{
    const char *asks[] = {"PUBSUB", "SHARDNUMSUB"};
    hl_command command = HL_COMMAND_INIT;
    hl_client *client = NULL;
    hl_reply *reply = NULL;
    hl_error err = HL_ERROR_INIT;
    struct cli_server server = {.url = words->server.url}; /* the rule is for --prefix only */
    int status = cli_server_open(&server, NULL, &client);

    free(server.prefix);
    if (status != CLI_OK)
        return status;
    command.flags = HL_COMMAND_READS;
    command.words = asks;
    command.word_count = 2;
    int rc = hl_client_command(client, &command, &reply, &err);
    hl_reply_free(reply);
    hl_client_close(client);
    if (rc < 0 && rc != HL_ESERVER)
        return cli_failed(&err);
    *ret_rights = rc == 0 ? sharded_rights : plain_rights;
    return CLI_OK;
}

static int acl_rule(struct acl_rule *rule)
{
    const char *url = cli_server_url(&rule->words->server);
    const char *const *messages = plain_rights;
    bool is_cluster = strcasestr(url, "-cluster://") != NULL;

    if (rule->words->is_for_sentinels) {
        acl_add(rule, watcher_rights);
        return CLI_OK;
    }
    int status = is_cluster ? acl_ask_messages(rule->words, &messages) : CLI_OK;
    acl_add(rule, is_cluster ? cluster_rights : server_rights);
    if (is_cluster)
        acl_add(rule, grant_rights);
    if (is_cluster && rule->words->has_grace)
        acl_add(rule, grace_cluster_rights);
    acl_add(rule, messages);
    acl_add_kinds(rule);
    if (strcasestr(url, "-sentinel://"))
        cli_say("the sentinels need a rule of their own: hirelock acl --sentinels");
    return status;
}

static int acl_run(int argc, char **argv)
{
    struct acl_words words = {.user = "locker"};
    struct acl_rule rule = {.words = &words};

    cli_parse(&cli_acl, argc, argv, &words);
    int status = acl_rule(&rule);
    if (status == CLI_OK)
        acl_print(&rule);
    cli_server_close(&words.server, NULL);
    return status;
}

const struct cli_command cli_acl = {.name = "acl",
                                    .summary = "print the rule for a user who may lock",
                                    .argp = &acl_argp,
                                    .run = acl_run};
