/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The settings that docs/semantics.md asks for, and what Redis's documentation says of them. */
#include "cli/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHECKS_FULL_PERCENT = 90,    /* of maxmemory */
    CHECKS_CLIENTS_PERCENT = 80, /* of maxclients */
    CHECKS_SLOW_US = 50000,      /* a round trip: one of a hundred takes longer */
    CHECKS_AHEAD_MS = 1000,      /* the displays of "held for" are wrong by as much */
    CHECKS_DRIFT_PERCENT = 1,    /* the margin of a lease (docs/semantics.md, "Clocks") */
};

static void finding_say(struct cli_finding *finding, enum cli_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void finding_say(struct cli_finding *finding, enum cli_state state, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    finding->state = state;
    vsnprintf(finding->says, sizeof(finding->says), format, words);
    va_end(words);
}

static void finding_fix(struct cli_finding *finding, const char *fix)
{
    snprintf(finding->fix, sizeof(finding->fix), "%s", fix);
}

static bool is_word(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

static void check_version(struct cli_checkup *checkup, struct cli_finding *finding)
{
    char version[32], name[32] = "redis";
    char *end;

    cli_facts_text(&checkup->facts, "server_name", name, sizeof(name));
    if (!cli_facts_text(&checkup->facts, "valkey_version", version, sizeof(version)) &&
        !cli_facts_text(&checkup->facts, "redis_version", version, sizeof(version))) {
        finding_say(finding, CLI_STATE_UNKNOWN, "INFO is refused: %s",
                    checkup->facts.why ? checkup->facts.why : "it has no version");
        finding_fix(finding, "Let this user run INFO (ACL: +info), or ask with another user.");
        return;
    }
    long major = strtol(version, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major > 6 || (major == 6 && minor >= 2)) {
        finding_say(finding, CLI_STATE_OK, "%s %s", name, version);
        return;
    }
    finding_say(finding, CLI_STATE_WARNING, "%s %s is older than all that are tested", name,
                version);
    finding_fix(finding, "Take Redis 6.2 or later, or Valkey.");
}

static void check_role(struct cli_checkup *checkup, struct cli_finding *finding)
{
    char role[32] = "";

    cli_facts_text(&checkup->facts, "role", role, sizeof(role));
    if (is_word(role, "slave")) {
        finding_say(finding, CLI_STATE_PROBLEM, "it is a replica, and replicas refuse writes");
        finding_fix(finding, "Connect to the master, or by redis-sentinel:// or redis-cluster://.");
    } else {
        finding_say(finding, role[0] ? CLI_STATE_OK : CLI_STATE_UNKNOWN, "%s",
                    role[0] ? role : "not told");
    }
}

static void check_eviction(struct cli_checkup *checkup, struct cli_finding *finding)
{
    const struct cli_facts *facts = &checkup->facts;
    int64_t limit = cli_facts_number(facts, "maxmemory", -1);
    int64_t evicted = cli_facts_number(facts, "evicted_keys", 0);
    char policy[32] = "";

    if (facts->policy)
        snprintf(policy, sizeof(policy), "%s", facts->policy);
    else
        cli_facts_text(facts, "maxmemory_policy", policy, sizeof(policy));
    if (!policy[0]) {
        finding_say(finding, CLI_STATE_UNKNOWN, "the server does not tell maxmemory-policy");
    } else if (is_word(policy, "noeviction")) {
        finding_say(finding, CLI_STATE_OK, "noeviction");
    } else if (limit == 0) {
        finding_say(finding, CLI_STATE_NOTE, "%s, without a maxmemory", policy);
        finding_fix(finding, "Before you set a maxmemory: maxmemory-policy noeviction.");
    } else {
        finding_say(finding, CLI_STATE_PROBLEM,
                    "%s: the server deletes locks when its memory is short (%lld keys so far)",
                    policy, (long long)evicted);
        finding_fix(finding, "CONFIG SET maxmemory-policy noeviction");
    }
}

static void check_memory(struct cli_checkup *checkup, struct cli_finding *finding)
{
    int64_t used = cli_facts_number(&checkup->facts, "used_memory", -1);
    int64_t limit = cli_facts_number(&checkup->facts, "maxmemory", 0);

    if (used < 0) {
        finding_say(finding, CLI_STATE_UNKNOWN, "not told");
    } else if (limit == 0) {
        finding_say(finding, CLI_STATE_OK, "%.1f MiB in use, no limit", (double)used / 1048576);
    } else {
        bool is_full = used / 100 > limit / 10000 * CHECKS_FULL_PERCENT;
        finding_say(finding, is_full ? CLI_STATE_WARNING : CLI_STATE_OK, "%.1f of %.1f MiB in use",
                    (double)used / 1048576, (double)limit / 1048576);
        if (is_full)
            finding_fix(finding, "A server that is full refuses new locks: give it more memory.");
    }
}

static void check_disk(struct cli_checkup *checkup, struct cli_finding *finding)
{
    char rdb[16] = "ok", aof[16] = "ok";

    cli_facts_text(&checkup->facts, "rdb_last_bgsave_status", rdb, sizeof(rdb));
    cli_facts_text(&checkup->facts, "aof_last_write_status", aof, sizeof(aof));
    if (cli_facts_number(&checkup->facts, "loading", 0) == 1) {
        finding_say(finding, CLI_STATE_PROBLEM, "it is loading its data, and refuses locks");
    } else if (!is_word(rdb, "ok") || !is_word(aof, "ok")) {
        finding_say(finding, CLI_STATE_PROBLEM,
                    "the last write to the disk failed (RDB: %s, AOF: %s); the server may refuse "
                    "all writes",
                    rdb, aof);
        finding_fix(finding, "Look at the server's log and its disk.");
    } else {
        finding_say(finding, CLI_STATE_OK, "the last writes to it succeeded");
    }
}

/* What a restart of the server does to locks. */
static void check_persistence(struct cli_checkup *checkup, struct cli_finding *finding)
{
    const struct cli_facts *facts = &checkup->facts;
    int64_t aof = cli_facts_number(facts, "aof_enabled", -1);
    static const char fix[] = "appendonly yes and appendfsync always, or failover_grace_ms in all "
                              "clients (docs/failover.md), or fencing tokens.";

    if (aof < 0 || (aof == 1 && !facts->appendfsync)) {
        finding_say(finding, CLI_STATE_UNKNOWN, "the server does not tell");
    } else if (aof == 1 && is_word(facts->appendfsync, "always")) {
        finding_say(finding, CLI_STATE_OK, "AOF, appendfsync always: locks outlive a restart");
    } else if (aof == 1) {
        finding_say(finding, CLI_STATE_NOTE,
                    "AOF, appendfsync %s: a crash may lose the last locks, and others get them",
                    facts->appendfsync);
        finding_fix(finding, fix);
    } else {
        bool has_rdb = facts->save && facts->save[0];
        finding_say(finding, CLI_STATE_WARNING,
                    "%s: a restart loses locks, and others get them while their owners hold them",
                    has_rdb ? "RDB only" : "none");
        finding_fix(finding, fix);
    }
}

static void check_replicas(struct cli_checkup *checkup, struct cli_finding *finding)
{
    const struct cli_facts *facts = &checkup->facts;
    int64_t replicas = cli_facts_number(facts, "connected_slaves", -1);
    int64_t good = cli_facts_number(facts, "min_slaves_good_slaves", replicas);
    long long wanted = facts->min_replicas ? strtoll(facts->min_replicas, NULL, 10) : -1;

    if (replicas < 0) {
        finding_say(finding, CLI_STATE_UNKNOWN, "not told");
    } else if (wanted > good) {
        finding_say(finding, CLI_STATE_PROBLEM,
                    "min-replicas-to-write is %lld, and %lld are there: all writes are refused",
                    wanted, (long long)good);
        finding_fix(finding, "Bring the replicas back, or lower min-replicas-to-write.");
    } else if (replicas == 0) {
        finding_say(finding, CLI_STATE_NOTE, "none: when this server dies, locks wait for it");
    } else if (wanted == 0 && replicas == 1) {
        finding_say(finding, CLI_STATE_NOTE,
                    "1; with min-replicas-to-write 1 its loss would stop all locks: have two");
    } else if (wanted == 0) {
        finding_say(finding, CLI_STATE_WARNING,
                    "%lld, and min-replicas-to-write 0: a master that is cut off goes on granting",
                    (long long)replicas);
        finding_fix(finding,
                    "CONFIG SET min-replicas-to-write 1, CONFIG SET min-replicas-max-lag 10");
    } else {
        finding_say(finding, CLI_STATE_OK, "%lld, min-replicas-to-write %s", (long long)replicas,
                    facts->min_replicas ? facts->min_replicas : "not told");
    }
}

static void check_clock(struct cli_checkup *checkup, struct cli_finding *finding)
{
    const struct cli_facts *facts = &checkup->facts;
    int64_t drift_us = llabs(facts->clock_drift_us), ahead_ms = facts->clock_ahead_us / 1000;
    int64_t margin_us = facts->clock_span_ms * 10 * CHECKS_DRIFT_PERCENT + facts->clock_doubt_us;

    if (!facts->has_clock) {
        finding_say(finding, CLI_STATE_UNKNOWN, "TIME is refused");
    } else if (drift_us > margin_us) {
        finding_say(finding, CLI_STATE_PROBLEM,
                    "it moved by %+.1f ms within %lld ms, beside this machine's",
                    (double)facts->clock_drift_us / 1000, (long long)facts->clock_span_ms);
        finding_fix(finding, "Let the clocks be slewed, never stepped (chrony, ntpd -x).");
    } else if (llabs(ahead_ms) > CHECKS_AHEAD_MS) {
        finding_say(finding, CLI_STATE_NOTE,
                    "%+.1f s beside this machine's; leases do not depend on that",
                    (double)ahead_ms / 1000);
    } else {
        finding_say(finding, CLI_STATE_OK, "%+lld ms beside this machine's, and steady",
                    (long long)ahead_ms);
    }
}

static void check_latency(struct cli_checkup *checkup, struct cli_finding *finding)
{
    int64_t p50 = cli_pulse_at(&checkup->pulse, 0.5), p99 = cli_pulse_at(&checkup->pulse, 0.99);
    int64_t slowest = cli_pulse_at(&checkup->pulse, 1);
    bool is_slow = p99 / 1000 > CHECKS_SLOW_US;

    if (checkup->pulse.count == 0) {
        finding_say(finding, CLI_STATE_UNKNOWN, "PING is refused");
        return;
    }
    finding_say(finding, is_slow ? CLI_STATE_WARNING : CLI_STATE_OK,
                "%zu round trips: half within %.3f ms, 99 %% within %.3f ms, all within %.3f ms",
                checkup->pulse.count, (double)p50 / 1e6, (double)p99 / 1e6, (double)slowest / 1e6);
    if (is_slow)
        finding_fix(finding, "Look for slow commands (SLOWLOG GET), swapping, forks, the network.");
}

static void check_scripts(struct cli_checkup *checkup, struct cli_finding *finding)
{
    const struct cli_facts *facts = &checkup->facts;

    if (facts->slow_scripts < 0)
        finding_say(finding, CLI_STATE_UNKNOWN, "SLOWLOG is refused");
    else if (facts->slow_scripts == 0)
        finding_say(finding, CLI_STATE_OK, "none in the slow log");
    else {
        finding_say(finding, CLI_STATE_WARNING,
                    "%lld scripts in the slow log, the slowest took %.1f ms",
                    (long long)facts->slow_scripts, (double)facts->slowest_script_us / 1000);
        finding_fix(finding, "SLOWLOG GET shows them: each delays all other clients as long.");
    }
}

static void check_connections(struct cli_checkup *checkup, struct cli_finding *finding)
{
    int64_t now = cli_facts_number(&checkup->facts, "connected_clients", -1);
    int64_t most = cli_facts_number(&checkup->facts, "maxclients", 0);
    int64_t rejected = cli_facts_number(&checkup->facts, "rejected_connections", 0);
    bool is_full = most > 0 && now * 100 > most * CHECKS_CLIENTS_PERCENT;

    if (now < 0) {
        finding_say(finding, CLI_STATE_UNKNOWN, "not told");
        return;
    }
    finding_say(finding, is_full || rejected > 0 ? CLI_STATE_WARNING : CLI_STATE_OK,
                "%lld of %lld in use, %lld were rejected", (long long)now, (long long)most,
                (long long)rejected);
    if (is_full || rejected > 0)
        finding_fix(finding, "Raise maxclients; each hirelock client takes two or more.");
}

static void check_access(struct cli_checkup *checkup, struct cli_finding *finding)
{
    const struct cli_facts *facts = &checkup->facts;
    bool is_open = is_word(facts->protected_mode, "no") && is_word(facts->user, "default");

    if (!facts->user) {
        finding_say(finding, CLI_STATE_UNKNOWN, "ACL WHOAMI is refused");
    } else if (is_word(facts->user, "default")) {
        finding_say(finding, is_open ? CLI_STATE_WARNING : CLI_STATE_NOTE,
                    "this is the user 'default'%s", is_open ? ", and protected-mode is off" : "");
        finding_fix(finding,
                    "Give the programs a user of their own: hirelock acl prints its rule.");
    } else {
        finding_say(finding, CLI_STATE_OK, "this is the user '%s'", facts->user);
    }
}

static void check_encryption(struct cli_checkup *checkup, struct cli_finding *finding)
{
    if (checkup->is_encrypted) {
        finding_say(finding, CLI_STATE_OK, "TLS");
    } else if (checkup->is_local) {
        finding_say(finding, CLI_STATE_OK, "none, and the connection stays on this machine");
    } else {
        finding_say(finding, CLI_STATE_WARNING, "none: passwords cross the network as they are");
        finding_fix(finding, "Take rediss:// (docs/tls.md), or a network that nobody listens to.");
    }
}

static const struct {
    const char *name;
    void (*run)(struct cli_checkup *checkup, struct cli_finding *finding);
} checks[] = {
    {"version", check_version},
    {"role", check_role},
    {"eviction", check_eviction},
    {"memory", check_memory},
    {"disk", check_disk},
    {"persistence", check_persistence},
    {"replicas", check_replicas},
    {"clock", check_clock},
    {"latency", check_latency},
    {"slow scripts", check_scripts},
    {"connections", check_connections},
    {"user", check_access},
    {"encryption", check_encryption},
};

void cli_checks_run(struct cli_checkup *checkup,
                    void (*tell)(const struct cli_finding *finding, void *arg), void *arg)
{
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        struct cli_finding finding = {.check = checks[i].name};
        checks[i].run(checkup, &finding);
        tell(&finding, arg);
    }
}

const char *cli_state_name(enum cli_state state)
{
    static const char *const names[] = {"ok", "note", "unknown", "warning", "PROBLEM"};

    return names[state];
}
