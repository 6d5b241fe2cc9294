/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The pair through TLS. The raw side is a blocking loop over the same OpenSSL: SSL_write() of a
 * command, SSL_read() until hiredis' parser has its answer. The server under test opens a port for
 * TLS, with a certificate that is made for it.
 */
#include "tls.h"

#include "cores.h"
#include "cpu.h"
#include "instant.h"
#include "must.h"
#include "nodes.h"
#include "raw.h"
#include "rounds.h"
#include "samples.h"
#include "scenario.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TLS_SYSTEM "/etc/ssl/certs/ca-certificates.crt"

enum { TLS_ROUND_MS = 50, TLS_RAW = 0, TLS_OURS, TLS_SIDES };
enum {
    TLS_RECONNECTS = 10,
    TLS_CONNECTION_ROUNDS = 7,
    TLS_PATIENCE_MS = 60000,
    TLS_OPENS = 15,
    TLS_MASTERS = 6
};

struct tls {
    char dir[64], authority[96], url[64];
    int port;
    SSL_CTX *context;
    SSL *ssl;
    redisReader *reader;
};

static void tls_run(const char *command)
{
    must(system(command) == 0, "%s: failed", command); /* NOLINT(cert-env33-c): our own words */
}

static void tls_make_certificate(struct tls *tls)
{
    char command[512];

    snprintf(tls->dir, sizeof(tls->dir), "/tmp/hl-bench-tls-XXXXXX");
    must(mkdtemp(tls->dir) != NULL, "no temporary folder");
    snprintf(tls->authority, sizeof(tls->authority), "%s/server.pem", tls->dir);
    snprintf(command, sizeof(command),
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
             "-subj /CN=bench -addext subjectAltName=IP:127.0.0.1 "
             "-keyout %s/server.key -out %s/server.pem 2>/dev/null",
             tls->dir, tls->dir);
    tls_run(command);
}

static void tls_open_port(struct tls *tls, struct server *server)
{
    redisReply *reply = NULL;

    for (int i = 0; i < 20 && (!reply || reply->type == REDIS_REPLY_ERROR); i++) {
        freeReplyObject(reply);
        tls->port = server->port + 1 + i;
        reply = redisCommand(server->link,
                             "CONFIG SET tls-auth-clients no tls-ca-cert-file %s/server.pem "
                             "tls-cert-file %s/server.pem tls-key-file %s/server.key tls-port %d",
                             tls->dir, tls->dir, tls->dir, tls->port);
    }
    must(reply && reply->type == REDIS_REPLY_STATUS, "no port for TLS: %s",
         reply ? reply->str : server->link->errstr);
    freeReplyObject(reply);
    snprintf(tls->url, sizeof(tls->url), "rediss://127.0.0.1:%d", tls->port);
}

static void tls_connect(struct tls *tls)
{
    char host[32];

    tls->context = SSL_CTX_new(TLS_client_method());
    must(tls->context && SSL_CTX_load_verify_file(tls->context, tls->authority) == 1,
         "no TLS context");
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    snprintf(host, sizeof(host), "127.0.0.1:%d", tls->port);
    BIO *socket = BIO_new_connect(host);
    must(socket && BIO_do_connect(socket) == 1, "connect %s: failed", host);
    tls->ssl = SSL_new(tls->context);
    tls->reader = redisReaderCreate();
    must(tls->ssl && tls->reader, "out of memory");
    SSL_set_bio(tls->ssl, socket, socket);
    must(SSL_connect(tls->ssl) == 1, "no handshake with %s", host);
}

redisReply *tls_command(struct tls *tls, int argc, const char **argv)
{
    char *command = NULL, bytes[16 * 1024];
    void *reply = NULL;
    int length =
        (int)redisFormatCommandArgv(&command, argc, argv, NULL); /* long long in hiredis 1.x */

    must(length > 0 && SSL_write(tls->ssl, command, length) == length, "TLS: cannot write");
    redisFreeCommand(command);
    while (!reply) {
        int got = SSL_read(tls->ssl, bytes, sizeof(bytes));
        must(got > 0 && redisReaderFeed(tls->reader, bytes, (size_t)got) == REDIS_OK &&
                 redisReaderGetReply(tls->reader, &reply) == REDIS_OK,
             "TLS: cannot read");
    }
    return reply;
}

static void tls_close(struct tls *tls, struct server *server)
{
    char command[128];

    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    redisReaderFree(tls->reader);
    freeReplyObject(redisCommand(server->link, "CONFIG SET tls-port 0"));
    snprintf(command, sizeof(command), "rm -rf %s", tls->dir);
    tls_run(command);
}

static void tls_measure(struct bench *bench, struct tls *tls, const char *placement, bool is_judged)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    struct bench at_tls = *bench;
    struct raw raw;
    char name[96];

    options.tls_ca_file = tls->authority;
    snprintf(at_tls.server.url, sizeof(at_tls.server.url), "%s", tls->url);
    hl_client *client = scenario_client(&at_tls, &options);
    hl_lock *lock = scenario_lock(client, "bench:tls:%d", TLS_OURS);
    struct rounds rounds = {.count = bench->is_quick ? 24 : 100,
                            .ms = TLS_ROUND_MS,
                            .sides = TLS_SIDES,
                            .side = {[TLS_RAW] = {.work = raw_pairs, .arg = &raw},
                                     [TLS_OURS] = {.work = scenario_pairs, .arg = lock}}};

    raw_open(&raw, &bench->server, "bench:tls:raw", 0);
    raw.tls = tls;
    rounds_run(&rounds);
    raw_close(&raw);
    snprintf(name, sizeof(name), "TLS, %s: raw", placement);
    report_figure(&bench->report, name, 1e6 / rounds.side[TLS_RAW].rate, "us");
    snprintf(name, sizeof(name), "TLS, %s: hirelock", placement);
    report_figure(&bench->report, name, 1e6 / rounds.side[TLS_OURS].rate, "us");
    double ratio = rounds.side[TLS_RAW].rate / rounds.side[TLS_OURS].rate;
    snprintf(name, sizeof(name), "TLS, %s: hirelock over raw", placement);
    if (is_judged)
        report_at_most(&bench->report, "tls_pair_vs_raw_tls", ratio, "x", 1.15);
    else
        report_figure(&bench->report, name, ratio, "x");
    hl_lock_free(lock);
    hl_client_close(client);
}

/* The system's authorities beside ours, in one file, as a program names it on many systems. False:
 * this one has no such file. */
static bool tls_make_bundle(const struct tls *tls, char bundle[96])
{
    char command[256];

    if (access(TLS_SYSTEM, R_OK) != 0)
        return false;
    snprintf(bundle, 96, "%s/bundle.pem", tls->dir);
    snprintf(command, sizeof(command), "cat %s %s >%s", TLS_SYSTEM, tls->authority, bundle);
    tls_run(command);
    return true;
}

/* All its connections are cut, and it is there again: two handshakes. */
static void tls_reconnect(struct bench *bench, hl_client *client)
{
    uint64_t wanted = scenario_stats(client).reconnects + 1;

    freeReplyObject(redisCommand(bench->server.link, "CLIENT KILL TYPE normal SKIPME yes"));
    while (scenario_stats(client).reconnects < wanted)
        (void)!hl_client_ping(client, TLS_PATIENCE_MS, NULL);
}

/* CPU time of the client for a connection, in the median of the rounds. */
static double tls_connection_us(struct bench *bench, hl_client *client, struct samples *all)
{
    double before = cpu_own_us();

    for (int i = 0; i < TLS_RECONNECTS; i++)
        tls_reconnect(bench, client);
    samples_add(all, (cpu_own_us() - before) / (2 * TLS_RECONNECTS));
    return samples_quantile(all, 0.5);
}

static hl_client *tls_client(const struct bench *bench, const struct tls *tls, const char *file)
{
    hl_client_options options = HL_CLIENT_OPTIONS_INIT;
    struct bench at_tls = *bench;

    options.tls_ca_file = file;
    options.log_level = HL_LOG_ERROR; /* it loses its connections on purpose */
    options.backoff_min_ms = options.backoff_max_ms = 1;
    options.connect_timeout_ms = TLS_PATIENCE_MS;
    snprintf(at_tls.server.url, sizeof(at_tls.server.url), "%s", tls->url);
    return scenario_client(&at_tls, &options);
}

/* Whether the authorities are one or all that a system knows, a connection costs the same. */
static void tls_measure_connections(struct bench *bench, const struct tls *tls, const char *path)
{
    struct samples one = {0}, bundle = {0};
    double one_us = 0, bundle_us = 0;

    for (int i = 0; i < TLS_CONNECTION_ROUNDS; i++) {
        hl_client *client = tls_client(bench, tls, tls->authority);
        one_us = tls_connection_us(bench, client, &one);
        hl_client_close(client);
        client = tls_client(bench, tls, path);
        bundle_us = tls_connection_us(bench, client, &bundle);
        hl_client_close(client);
    }
    report_figure(&bench->report, "TLS, a connection: one authority", one_us, "us");
    report_figure(&bench->report, "TLS, a connection: the system's", bundle_us, "us");
    report_at_most(&bench->report, "tls_connection_with_systems_authorities", bundle_us / one_us,
                   "x", 1.2);
    samples_free(&one);
    samples_free(&bundle);
}

struct tls_opens { /* medians, in microseconds */
    struct samples times, cpu;
    double time_us, cpu_us;
};

static void tls_open_once(struct bench *bench, const char *url, const char *file,
                          struct tls_opens *opens)
{
    struct tls tls = {0};

    snprintf(tls.url, sizeof(tls.url), "%s", url);
    int64_t begin = instant_now();
    double cpu_us = cpu_own_us();
    hl_client *client = tls_client(bench, &tls, file);
    samples_add(&opens->times, (double)(instant_now() - begin) / 1000);
    samples_add(&opens->cpu, cpu_own_us() - cpu_us);
    hl_client_close(client);
    opens->time_us = samples_quantile(&opens->times, 0.5);
    opens->cpu_us = samples_quantile(&opens->cpu, 0.5);
}

static void tls_report_opens(struct bench *bench, const char *what, struct tls_opens *opens)
{
    char name[96];

    snprintf(name, sizeof(name), "six masters are up, %s", what);
    report_figure(&bench->report, name, opens->time_us, "us");
    snprintf(name, sizeof(name), "six masters are up, %s: CPU", what);
    report_figure(&bench->report, name, opens->cpu_us, "us");
    samples_free(&opens->times);
    samples_free(&opens->cpu);
}

/* From nothing to connections with six masters, two to each. An open reads the file of authorities,
 * too. CPU is judged, as other work on the machine stretches the time. Without TLS there is no
 * handshake, so that is for comparison only. */
static void tls_measure_cluster(struct bench *bench, const struct tls *tls, const char *bundle)
{
    struct tls_opens plain = {0}, one = {0}, all = {0};
    struct nodes nodes;
    char url[64];

    nodes_start_tls(&nodes, TLS_MASTERS, tls->dir);
    snprintf(url, sizeof(url), "redis-cluster://127.0.0.1:%d", nodes.node[0].port);
    for (int i = 0; i < TLS_OPENS; i++) {
        tls_open_once(bench, url, NULL, &plain);
        tls_open_once(bench, nodes.url, tls->authority, &one);
        tls_open_once(bench, nodes.url, bundle, &all);
    }
    tls_report_opens(bench, "without TLS", &plain);
    tls_report_opens(bench, "TLS, one authority", &one);
    tls_report_opens(bench, "TLS, the system's", &all);
    report_at_most(&bench->report, "tls_cluster_with_systems_authorities", all.cpu_us / one.cpu_us,
                   "x", 1.3);
    report_figure(&bench->report, "six masters are up, the system's over no TLS",
                  all.time_us / plain.time_us, "x");
    nodes_stop(&nodes);
}

void scenario_tls(struct bench *bench)
{
    struct tls tls = {.port = 0};
    char bundle[96];

    report_heading("acquire and release, one thread, TLS");
    tls_make_certificate(&tls);
    tls_open_port(&tls, &bench->server);
    tls_connect(&tls);
    if (cores_part(bench->server.pid))
        tls_measure(bench, &tls, "pinned", true);
    cores_free(bench->server.pid);
    tls_measure(bench, &tls, "free", false);
    if (tls_make_bundle(&tls, bundle)) {
        tls_measure_connections(bench, &tls, bundle);
        tls_measure_cluster(bench, &tls, bundle);
    } else {
        report_heading("TLS, connections: no " TLS_SYSTEM " here");
    }
    tls_close(&tls, &bench->server);
}
