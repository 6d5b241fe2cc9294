/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock doctor: what is wrong with the servers, for locks; and whether a lock works there. */
#include "cli/checkup.h"
#include "cli/output.h"
#include "cli/server.h"

#include <hirelock/command.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DOCTOR_PINGS = 200,
    DOCTOR_SPAN_MS = 1000,
    DOCTOR_LEASE_MS = 10000,
    DOCTOR_NODES = 256,
    DOCTOR_INDENT = 23,
    DOCTOR_KEY_JSON = 1,
    DOCTOR_KEY_STRICT,
    DOCTOR_KEY_READ_ONLY
};

struct doctor_words {
    struct cli_server server;
    bool is_json, is_strict, is_read_only;
};

struct doctor {
    const struct doctor_words *words;
    hl_client *client;
    struct cli_node node[DOCTOR_NODES];
    const char *told; /* the node that is being told of */
    unsigned counts[CLI_STATE_PROBLEM + 1];
};

static error_t doctor_parse(int key, char *word, struct argp_state *state)
{
    struct doctor_words *words = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &words->server;
        return 0;
    case DOCTOR_KEY_JSON:
        words->is_json = true;
        return 0;
    case DOCTOR_KEY_STRICT:
        words->is_strict = true;
        return 0;
    case DOCTOR_KEY_READ_ONLY:
        words->is_read_only = true;
        return 0;
    case ARGP_KEY_ARG:
        if (words->server.url)
            argp_error(state, "one URL, please");
        cli_server_take_url(&words->server, word);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option doctor_options[] = {
    {"json", DOCTOR_KEY_JSON, NULL, 0, "an object a line", 0},
    {"read-only", DOCTOR_KEY_READ_ONLY, NULL, 0, "acquires no lock of its own", 0},
    {"strict", DOCTOR_KEY_STRICT, NULL, 0, "warnings count as problems", 0},
    {0}};
static const struct argp_child doctor_children[] = {{&cli_server_argp, 0, NULL, 0}, {0}};
static const struct argp doctor_argp = {
    .options = doctor_options,
    .parser = doctor_parse,
    .args_doc = "[URL]",
    .doc = "Says what is wrong with a server, or with all nodes, for locks.\v"
           "Examples:\n"
           "  hirelock doctor rediss://locks.example\n"
           "  hirelock doctor --json | jq -r 'select(.state == \"PROBLEM\").says'\n\n"
           "The status is 1 if there is a problem. It asks for INFO, CONFIG GET, TIME, SLOWLOG GET "
           "and PING, takes a little more than a second for each node, and acquires and releases a "
           "lock of a name that nobody else has.",
    .children = doctor_children};

static const char *doctor_color(enum cli_state state)
{
    static const char *const colors[] = {"32", "36", "35", "33", "1;31"};

    return colors[state];
}

static void doctor_tell_json(const struct doctor *doctor, const struct cli_finding *finding)
{
    json_object *line = json_object_new_object();

    json_object_object_add(line, "node", json_object_new_string(doctor->told));
    json_object_object_add(line, "check", json_object_new_string(finding->check));
    json_object_object_add(line, "state", json_object_new_string(cli_state_name(finding->state)));
    json_object_object_add(line, "says", json_object_new_string(finding->says));
    if (finding->fix[0])
        json_object_object_add(line, "fix", json_object_new_string(finding->fix));
    cli_print_json(line);
    json_object_put(line);
}

static void doctor_tell(const struct cli_finding *finding, void *arg)
{
    struct doctor *doctor = arg;
    bool has_colors = cli_has_colors(STDOUT_FILENO);
    const char *state = cli_state_name(finding->state);

    doctor->counts[finding->state]++;
    if (doctor->words->is_json) {
        doctor_tell_json(doctor, finding);
        return;
    }
    if (has_colors)
        printf("  \033[%sm%-7s\033[0m ", doctor_color(finding->state), state);
    else
        printf("  %-7s ", state);
    printf("%-12s %s\n", finding->check, finding->says);
    if (finding->fix[0] && finding->state != CLI_STATE_OK)
        printf("%*s-> %s\n", DOCTOR_INDENT, "", finding->fix);
}

static void doctor_look_at(struct doctor *doctor, const struct cli_node *node)
{
    static const struct cli_checkup_effort effort = {DOCTOR_PINGS, DOCTOR_SPAN_MS};
    struct cli_checkup checkup;

    cli_checkup_gather(doctor->client, cli_server_url(&doctor->words->server), node->address,
                       &effort, &checkup);
    cli_checks_run(&checkup, doctor_tell, doctor);
    if (!doctor->words->is_json)
        cli_pulse_draw(&checkup.pulse, stdout);
    cli_checkup_free(&checkup);
}

static void doctor_visit(struct doctor *doctor, const struct cli_node *node)
{
    struct cli_finding finding = {.check = "connection", .state = CLI_STATE_PROBLEM};

    doctor->told = node->address;
    if (!doctor->words->is_json)
        printf("%s%s\n", node->address, node->is_sentinel ? ", a sentinel" : "");
    if (node->is_connected && node->is_sentinel) {
        finding.state = CLI_STATE_OK;
        snprintf(finding.says, sizeof(finding.says), "it is there");
        doctor_tell(&finding, doctor);
    } else if (node->is_connected) {
        doctor_look_at(doctor, node);
    } else {
        snprintf(finding.says, sizeof(finding.says), "%s",
                 node->problem[0] ? node->problem : "there is none yet");
        doctor_tell(&finding, doctor);
    }
}

/* One lock from the acquire to the release, of a random name. */
static void doctor_try_lock(struct doctor *doctor)
{
    hl_acquire_options options = HL_ACQUIRE_OPTIONS_INIT;
    struct cli_finding finding = {.check = "lock", .state = CLI_STATE_PROBLEM};
    hl_error err = HL_ERROR_INIT;
    hl_lock *lock = NULL;
    char name[80];
    int64_t began = cli_pulse_now();

    options.wait_ms = HL_NO_WAIT;
    options.lease_ms = DOCTOR_LEASE_MS;
    snprintf(name, sizeof(name), "hirelock:doctor:%s", hl_client_id(doctor->client));
    if (hl_lock_new(doctor->client, name, &lock, &err) == 0 &&
        hl_lock_acquire_with(lock, &options, &err) == 0 && hl_lock_release(lock, &err) == 0) {
        finding.state = CLI_STATE_OK;
        snprintf(finding.says, sizeof(finding.says), "acquired and released within %.1f ms",
                 (double)(cli_pulse_now() - began) / 1e6);
    } else {
        snprintf(finding.says, sizeof(finding.says), "%s", err.text);
        snprintf(finding.fix, sizeof(finding.fix), "%s",
                 err.code == HL_EDENIED ? "hirelock acl prints the rule that a user needs." : "");
    }
    hl_lock_free(lock);
    doctor->told = "all";
    if (!doctor->words->is_json)
        puts("A lock of its own");
    doctor_tell(&finding, doctor);
}

static int doctor_sum_up(const struct doctor *doctor)
{
    unsigned problems = doctor->counts[CLI_STATE_PROBLEM];
    unsigned warnings = doctor->counts[CLI_STATE_WARNING];

    if (!doctor->words->is_json)
        printf("%u problem%s, %u warning%s\n", problems, problems == 1 ? "" : "s", warnings,
               warnings == 1 ? "" : "s");
    return problems > 0 || (doctor->words->is_strict && warnings > 0) ? CLI_NO : CLI_OK;
}

static int doctor_run(int argc, char **argv)
{
    struct doctor_words words = {0};
    static struct doctor doctor; /* large */

    cli_parse(&cli_doctor, argc, argv, &words);
    doctor.words = &words;
    int status = cli_server_open(&words.server, NULL, &doctor.client), nodes = 0;
    if (status == CLI_OK) {
        nodes = cli_server_nodes(doctor.client, doctor.node, DOCTOR_NODES);
        status = nodes < 0 ? CLI_FAILED : CLI_OK;
    }
    if (status == CLI_OK) {
        for (int i = 0; i < nodes && i < DOCTOR_NODES; i++)
            doctor_visit(&doctor, &doctor.node[i]);
        if (nodes > DOCTOR_NODES)
            cli_say("%d nodes more were not looked at", nodes - DOCTOR_NODES);
        if (!words.is_read_only)
            doctor_try_lock(&doctor);
        status = doctor_sum_up(&doctor);
    }
    cli_server_close(&words.server, doctor.client);
    return status;
}

const struct cli_command cli_doctor = {.name = "doctor",
                                       .summary = "say what is wrong with the servers, for locks",
                                       .argp = &doctor_argp,
                                       .run = doctor_run};
