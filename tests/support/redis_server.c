/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Writes a redis.conf, starts the program and waits until it answers. */
#include "redis_server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "certificates.h"
#include "deadline.h"
#include "fatal.h"
#include "listener.h"
#include "redis_link.h"
#include "redis_log.h"
#include "redis_program.h"
#include "redis_shards.h"
#include "spawn.h"
#include "test.h"

struct redis_server {
    struct redis_options options; /* strings borrowed only until redis.conf is written */
    pid_t pid;                    /* 0: killed */
    bool frozen;
    bool is_joined; /* another process's */
    int port;
    char dir[64];
    char socket[80];
    char log[80];
    char host[32];
    char url[96];
    _Atomic int64_t *clock_offset_ms;  /* mapped; NULL without shim */
    const struct redis_shards *shards; /* NULL: it stands for itself */
    struct redis_link link;
};

static const char *redis_server_shim(void)
{
    const char *shim = getenv("HL_CLOCK_SHIM");
#ifdef HL_CLOCK_SHIM_PATH
    if (!shim)
        shim = HL_CLOCK_SHIM_PATH;
#endif
    return shim && access(shim, R_OK) == 0 ? shim : NULL;
}

bool redis_server_has_clock_shim(void)
{
    return redis_server_shim() != NULL;
}

static char redis_server_last_authority[80];

const char *redis_server_authority(void)
{
    return getenv(REDIS_SERVER_AUTHORITY) ? getenv("SSL_CERT_FILE") : redis_server_last_authority;
}

static void redis_server_make_certificates(struct redis_server *server)
{
    const struct redis_server *relative = server->options.relative;
    const char *dir = relative ? relative->dir : getenv(REDIS_SERVER_AUTHORITY);
    snprintf(redis_server_last_authority, sizeof redis_server_last_authority, "%s/ca.pem",
             server->dir);
    if (dir)
        certificate_share(dir, server->dir, "ca");
    else
        certificate_make(server->dir, &(struct certificate){.name = "ca"});
    certificate_make(server->dir, &(struct certificate){.name = "server",
                                                        .issuer = "ca",
                                                        .hosts = "DNS:localhost,IP:127.0.0.1"});
}

static void redis_server_set_paths(struct redis_server *server)
{
    snprintf(server->socket, sizeof server->socket, "%s/s", server->dir);
    snprintf(server->log, sizeof server->log, "%s/log", server->dir);
}

static void redis_server_make_dir(struct redis_server *server)
{
    const char *base = getenv("TMPDIR");
    snprintf(server->dir, sizeof server->dir, "%s/hl-redis-XXXXXX",
             base && strlen(base) < 40 ? base : "/tmp");
    if (!mkdtemp(server->dir))
        fatal_errno("mkdtemp %s", server->dir);
    redis_server_set_paths(server);
}

/* Everything that a test could trip over by accident is off: snapshots, rewrites, fsync. The user
 * hltest is the tests' own way in, whatever happens to the default user. */
static void redis_server_write_config(struct redis_server *server)
{
    static const char debug[] = "enable-debug-command yes"; /* where it has to be enabled */
    static const char timestamps[] = "aof-timestamp-enabled yes";
    char path[80];
    const struct redis_options *options = &server->options;
    snprintf(path, sizeof path, "%s/redis.conf", server->dir);
    FILE *file = fopen(path, "we");
    if (!file)
        fatal_errno("open %s", path);
    fprintf(file, "bind %s\nunixsocket %s\n", server->host, server->socket);
    if (options->tls)
        fprintf(file,
                "port 0\ntls-port %d\ntls-ca-cert-file %s\ntls-cert-file %s/server.pem\n"
                "tls-key-file %s/server.key\ntls-auth-clients no\ntls-replication yes\n",
                server->port, redis_server_last_authority, server->dir, server->dir);
    else
        fprintf(file, "port %d\n", server->port);
    fprintf(file, "dir %s\nlogfile \"\"\ndaemonize no\nsave \"\"\n", server->dir);
    fprintf(file, "appendonly %s\nappendfsync no\n", options->appendonly ? "yes" : "no");
    fprintf(file, "auto-aof-rewrite-percentage 0\nuser hltest on nopass ~* &* +@all\n");
    if (redis_program_knows(debug))
        fprintf(file, "%s\n", debug);
    if (options->appendonly && redis_program_knows(timestamps))
        fprintf(file, "%s\n", timestamps);
    if (options->cluster)
        fprintf(file, "cluster-enabled yes\ncluster-announce-ip %s\n", server->host);
    if (options->cluster && options->tls)
        fprintf(file, "tls-cluster yes\n");
    if (options->password)
        fprintf(file, "requirepass \"%s\"\n", options->password);
    if (options->config)
        fprintf(file, "%s\n", options->config);
    must(fclose(file) == 0);
}

static void redis_server_map_clock(struct redis_server *server)
{
    char path[80];
    snprintf(path, sizeof path, "%s/clock", server->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(int64_t)) != 0)
        fatal_errno("make %s", path);
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(page != MAP_FAILED);
    server->clock_offset_ms = page;
    close(fd);
}

static void redis_server_spawn(struct redis_server *server)
{
    char config[80], preload[512], shim_file[128];
    snprintf(config, sizeof config, "%s/redis.conf", server->dir);
    char *argv[] = {(char *)redis_program(), config, server->options.sentinel ? "--sentinel" : NULL,
                    NULL};
    struct spawn spawn = {.argv = argv, .output = server->log};
    if (server->clock_offset_ms) {
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", redis_server_shim());
        snprintf(shim_file, sizeof shim_file, "HL_CLOCK_SHIM_FILE=%s/clock", server->dir);
        spawn.environment[0] = preload;
        spawn.environment[1] = shim_file;
    }
    server->pid = spawn_start(&spawn);
    server->frozen = false;
}

/* True if PING is answered: the server is ready. */
static bool redis_server_answers(struct redis_server *server)
{
    redisContext *context = redis_link_connect(server->socket);
    if (!context)
        return false;
    redisReply *reply = redisCommand(context, "PING");
    bool ready = reply && (reply->type == REDIS_REPLY_STATUS || server->options.may_be_loading);
    freeReplyObject(reply);
    redisFree(context);
    return ready;
}

/* False when the program ended because another program has its port. */
static bool redis_server_comes_up(struct redis_server *server)
{
    struct deadline deadline = deadline_in(15000);
    int status = 0;
    while (!redis_server_answers(server)) {
        if (spawn_reap(server->pid, 0, &status)) {
            server->pid = 0;
            if (redis_log_contains(server->log, "Address already in use"))
                return false;
            redis_server_show_log(server);
            fatal("%s ended with status %d", redis_program(), status);
        }
        if (deadline_is_over(deadline)) {
            redis_server_show_log(server);
            fatal("%s does not answer", redis_program());
        }
        deadline_nap();
    }
    return true;
}

/* The second port of a node of a cluster may not be that of a proxy which refuses connects now, and
 * is below the range that the kernel hands out to clients. */
static int redis_server_draw_port(const struct redis_server *server)
{
    enum { BUS = 10000, CLIENTS = 32768 };
    const struct redis_options *options = &server->options;
    if (options->port || (!options->tcp && !options->tls))
        return options->port;
    int port = listener_free_port();
    while (options->cluster && (port + BUS >= CLIENTS || listener_is_reserved(port + BUS)))
        port = listener_free_port();
    return port;
}

/* A port is free only until a program takes it: on a clash, try the next one. */
static void redis_server_first_start(struct redis_server *server)
{
    for (int i = 0; i < 20; i++) {
        server->port = redis_server_draw_port(server);
        redis_server_write_config(server);
        redis_server_spawn(server);
        if (redis_server_comes_up(server))
            return;
        unlink(server->log);
    }
    fatal("no port left for %s", redis_program());
}

static void redis_server_name(struct redis_server *server)
{
    if (server->port)
        snprintf(server->url, sizeof server->url, "%s://%s:%d",
                 server->options.tls ? "rediss" : "redis", server->host, server->port);
    else
        snprintf(server->url, sizeof server->url, "unix://%s", server->socket);
}

struct redis_server *redis_server_start(const struct redis_options *options)
{
    struct redis_server *server = calloc(1, sizeof *server);
    must(server);
    if (options)
        server->options = *options;
    const char *kind = getenv("HL_TEST_SERVER");
    if (kind && strcmp(kind, "tls") == 0 && !server->options.plain)
        server->options.tls = true;
    if (server->options.tls && !redis_program_knows("tls-port 0"))
        skip("%s was built without TLS", redis_program());
    redis_server_make_dir(server);
    snprintf(server->host, sizeof server->host, "%s",
             server->options.host ? server->options.host : "127.0.0.1");
    if (server->options.tls)
        redis_server_make_certificates(server);
    redis_link_init(&server->link, server->socket);
    if (server->options.clock_shim) {
        must(redis_server_has_clock_shim());
        redis_server_map_clock(server);
    }
    redis_server_first_start(server);
    redis_server_name(server);
    return server;
}

void redis_server_word(const struct redis_server *server, char ret_word[REDIS_SERVER_WORD])
{
    must(!server->options.tls && !server->clock_offset_ms);
    snprintf(ret_word, REDIS_SERVER_WORD, "%s:%d:%d", server->dir, server->port, (int)server->pid);
}

struct redis_server *redis_server_join(const char *word)
{
    struct redis_server *server = calloc(1, sizeof *server);
    must(server);
    server->is_joined = true;
    must(sscanf(word, "%63[^:]:%d:%d", server->dir, &server->port, &server->pid) == 3);
    snprintf(server->host, sizeof server->host, "127.0.0.1");
    redis_server_set_paths(server);
    redis_link_init(&server->link, server->socket);
    redis_server_name(server);
    return server;
}

void redis_server_kill(struct redis_server *server)
{
    int status = 0;
    if (!server->pid)
        return;
    must(!server->is_joined);
    redis_link_drop(&server->link);
    kill(server->pid, SIGKILL);
    if (!spawn_reap(server->pid, 10000, &status))
        fatal("redis-server %d survives SIGKILL", (int)server->pid);
    server->pid = 0;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        redis_server_show_log(server);
        fatal("redis-server had ended by itself, status %d", status);
    }
}

static int redis_server_remove_entry(const char *path, const struct stat *stat, int type,
                                     struct FTW *where)
{
    (void)stat;
    (void)type;
    (void)where;
    return remove(path);
}

/* A crash report fails the test even if the test has killed the server since. */
static void redis_server_close_log(struct redis_server *server)
{
    if (redis_log_reports_crash(server->log)) {
        redis_server_show_log(server);
        fatal("redis-server crashed");
    }
    unlink(server->log);
}

void redis_server_stop(struct redis_server *server)
{
    if (!server)
        return;
    if (server->is_joined) {
        redis_link_deinit(&server->link);
        free(server);
        return;
    }
    redis_server_kill(server);
    redis_link_deinit(&server->link);
    redis_server_close_log(server);
    if (server->clock_offset_ms)
        munmap((void *)server->clock_offset_ms, sizeof(int64_t));
    nftw(server->dir, redis_server_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(server);
}

void redis_server_restart(struct redis_server *server)
{
    struct deadline deadline = deadline_in(15000);
    redis_server_kill(server);
    for (;;) {
        redis_server_close_log(server);
        redis_server_spawn(server);
        if (redis_server_comes_up(server))
            return;
        if (deadline_is_over(deadline))
            fatal("port %d was taken while redis-server was down", server->port);
    }
}

void redis_server_freeze(struct redis_server *server)
{
    int status = 0;
    must(!server->is_joined);
    kill(server->pid, SIGSTOP);
    while (waitpid(server->pid, &status, WUNTRACED) < 0)
        must(errno == EINTR);
    must(WIFSTOPPED(status));
    server->frozen = true;
}

void redis_server_thaw(struct redis_server *server)
{
    must(server->frozen);
    kill(server->pid, SIGCONT);
    server->frozen = false;
}

void redis_server_wipe(struct redis_server *server)
{
    static const char *const kept[] = {"appendonlydir", "appendonly.aof", "dump.rdb"};
    must(server->pid == 0);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", server->dir, kept[i]);
        nftw(path, redis_server_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

void redis_server_step_clock(struct redis_server *server, int64_t ms)
{
    must(server->clock_offset_ms);
    atomic_fetch_add(server->clock_offset_ms, ms);
}

void redis_server_stand_for(struct redis_server *server, const struct redis_shards *shards)
{
    server->shards = shards;
}

const struct redis_shards *redis_server_shards(const struct redis_server *server)
{
    return server->shards;
}

const char *redis_server_url(const struct redis_server *server)
{
    return server->shards ? server->shards->url : server->url;
}

const char *redis_server_socket(const struct redis_server *server)
{
    return server->socket;
}

const char *redis_server_dir(const struct redis_server *server)
{
    return server->dir;
}

const char *redis_server_host(const struct redis_server *server)
{
    return server->host;
}

int redis_server_port(const struct redis_server *server)
{
    return server->port;
}

bool redis_server_has_tls(const struct redis_server *server)
{
    return server->options.tls;
}

pid_t redis_server_pid(const struct redis_server *server)
{
    return server->pid;
}

bool redis_server_is_up(const struct redis_server *server)
{
    return server->pid && !server->frozen;
}

int64_t redis_server_cpu_us(const struct redis_server *server)
{
    clockid_t clock;
    struct timespec used;
    must(clock_getcpuclockid(server->pid, &clock) == 0 && clock_gettime(clock, &used) == 0);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

int redis_server_count_log(const struct redis_server *server, const char *text)
{
    return redis_log_count(server->log, text);
}

void redis_server_show_log(const struct redis_server *server)
{
    redis_log_show(server->log);
}

struct redis_link *redis_server_link(struct redis_server *server)
{
    return &server->link;
}
