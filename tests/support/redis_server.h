/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Real redis-server processes (redis_program.h), each in a temporary directory of its own. A server
 * dies with the thread that started it. A server that fails by itself ends the test, and the end of
 * its log is shown.
 *
 * With HL_TEST_SERVER=tls in the environment every server has .tls, but those with .plain; its
 * other words are in shared_servers.h. A server with TLS has in its directory ca.pem, server.pem
 * for 127.0.0.1 and localhost, and their keys. A test that starts one is skipped where the program
 * was built without TLS.
 */
#ifndef HL_TEST_REDIS_SERVER_H
#define HL_TEST_REDIS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct redis_link;
struct redis_server;
struct redis_shards;

/* All zero: a unix socket only, no persistence, no password. */
struct redis_options {
    bool tcp;            /* listens on a free port of 127.0.0.1 as well; the URL names that port */
    bool tls;            /* listens on a free port of 127.0.0.1 with TLS; the URL names that port */
    bool plain;          /* never TLS */
    bool cluster;        /* a node of a cluster, alone at first; its bus has the port + 10000 */
    bool sentinel;       /* a Sentinel; .config has its lines, and it rewrites its redis.conf */
    bool appendonly;     /* keeps its keys over kill and restart */
    bool may_be_loading; /* start and restart return at the first answer, even -LOADING */
    bool clock_shim;     /* redis_server_step_clock works */
    const char *host;    /* listens there instead of 127.0.0.1; NULL: there */
    int port;            /* at this port; 0: at a free one */
    const char *password; /* of the default user */
    const char *config;   /* more lines of redis.conf; `user NAME on >pw ...` adds a user */
    /* With .tls: a server whose authority is this one's, too. NULL: it has one of its own. */
    const struct redis_server *relative;
};

/* Returns when the server answers PING. options may be NULL. */
struct redis_server *redis_server_start(const struct redis_options *options);

/* Ends and frees the server, and removes its directory. A crash or sanitizer report in its log
 * fails the test. NULL is accepted. */
void redis_server_stop(struct redis_server *server);

void redis_server_kill(struct redis_server *server);   /* SIGKILL; its files stay */
void redis_server_freeze(struct redis_server *server); /* SIGSTOP; the kernel still accepts */
void redis_server_thaw(struct redis_server *server);
void redis_server_wipe(struct redis_server *server); /* a killed server forgets its data */

/* Kills the server if it runs, and starts it again with the same directory, socket and port. */
void redis_server_restart(struct redis_server *server);

/* Moves the server's wall clock by ms, in addition to earlier moves. Needs .clock_shim. */
void redis_server_step_clock(struct redis_server *server, int64_t ms);
bool redis_server_has_clock_shim(void); /* this build brings the shim's library */

/* Without credentials. */
const char *redis_server_url(const struct redis_server *server);
const char *redis_server_socket(const struct redis_server *server);
const char *redis_server_dir(const struct redis_server *server);
const char *redis_server_host(const struct redis_server *server); /* where it listens by TCP */
int redis_server_port(const struct redis_server *server); /* that of the URL; 0 on a unix socket */
bool redis_server_has_tls(const struct redis_server *server);
/* The authority of the server with TLS that was started last, or of all servers of a run: the
 * directory that the variable names has it (shared_servers_start()). */
#define REDIS_SERVER_AUTHORITY "HL_TEST_AUTHORITY"
const char *redis_server_authority(void);
pid_t redis_server_pid(const struct redis_server *server);
bool redis_server_is_up(const struct redis_server *server);     /* neither killed nor frozen */
int64_t redis_server_cpu_us(const struct redis_server *server); /* used since it was started */

/* For the process that owns the server, and one that it starts: there it is only asked, and neither
 * killed nor frozen nor restarted; redis_server_stop() lets go of it. */
enum { REDIS_SERVER_WORD = 128 };
void redis_server_word(const struct redis_server *server, char ret_word[REDIS_SERVER_WORD]);
struct redis_server *redis_server_join(const char *word);

/* From now on it stands for these (redis_shards.h), which are borrowed. NULL: for itself. */
void redis_server_stand_for(struct redis_server *server, const struct redis_shards *shards);
const struct redis_shards *redis_server_shards(const struct redis_server *server);

int redis_server_count_log(const struct redis_server *server, const char *text); /* lines */
/* Prints the last lines of its log to stderr. */
void redis_server_show_log(const struct redis_server *server);

/* The link for the tests' commands (redis_probe.h). */
struct redis_link *redis_server_link(struct redis_server *server);

#endif
