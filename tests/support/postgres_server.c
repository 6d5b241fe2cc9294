/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Starts the program and waits until it takes a connection. */
#include "postgres_server.h"

#include "test.h"

#ifdef HL_HAVE_LIBPQ

#include <libpq-fe.h>
#include <signal.h>
#include <sys/wait.h>

#include "fatal.h"
#include "spawn.h"

enum { POSTGRES_LACKS = 77 };

struct postgres_server {
    pid_t pid;
    char dir[64];
    char log[80];
};

struct postgres_link {
    PGconn *connection;
    PGresult *result; /* of the last statement */
};

static void postgres_spawn(struct postgres_server *server)
{
    char *argv[] = {"sh", HL_POSTGRES_SCRIPT, server->dir, NULL};
    server->pid = spawn_start(&(struct spawn){.argv = argv, .output = server->log});
}

static void postgres_remove(struct postgres_server *server)
{
    char *argv[] = {"rm", "-rf", server->dir, server->log, NULL};
    int status = 0;
    pid_t pid = spawn_start(&(struct spawn){.argv = argv, .output = "/dev/null"});
    must(spawn_reap(pid, 20000, &status) && status == 0);
    free(server);
}

static PGconn *postgres_connect(const char *dir)
{
    char conninfo[160];
    snprintf(conninfo, sizeof conninfo, "host=%s user=hirelock dbname=postgres", dir);
    return PQconnectdb(conninfo);
}

static bool postgres_answers(const struct postgres_server *server)
{
    PGconn *connection = postgres_connect(server->dir);
    bool answers = PQstatus(connection) == CONNECTION_OK;
    PQfinish(connection);
    return answers;
}

/* The last line that it said, borrowed until the next call. */
static const char *postgres_last_line(const struct postgres_server *server)
{
    static char line[512];
    FILE *log = fopen(server->log, "re");
    line[0] = '\0';
    while (log && fgets(line, sizeof line, log))
        line[strcspn(line, "\n")] = '\0';
    if (log)
        fclose(log);
    return line;
}

static void postgres_await(struct postgres_server *server)
{
    struct deadline deadline = deadline_in(60000);
    int status = 0;
    while (!postgres_answers(server)) {
        if (spawn_reap(server->pid, 0, &status)) {
            char why[512];
            snprintf(why, sizeof why, "%s", postgres_last_line(server));
            postgres_remove(server);
            if (WIFEXITED(status) && WEXITSTATUS(status) == POSTGRES_LACKS)
                skip("%s", why);
            fatal("postgres ended: %s", why);
        }
        if (deadline_is_over(deadline))
            fatal("postgres does not come up: %s", postgres_last_line(server));
        deadline_nap();
    }
}

/* The log lies beside the directory, which becomes another user's. */
struct postgres_server *postgres_server_start(void)
{
    struct postgres_server *server = calloc(1, sizeof *server);
    const char *base = getenv("TMPDIR");
    must(server);
    snprintf(server->dir, sizeof server->dir, "%s/hl-postgres-XXXXXX",
             base && strlen(base) < 40 ? base : "/tmp");
    if (!mkdtemp(server->dir))
        fatal_errno("mkdtemp %s", server->dir);
    snprintf(server->log, sizeof server->log, "%s.log", server->dir);
    postgres_spawn(server);
    postgres_await(server);
    return server;
}

void postgres_server_stop(struct postgres_server *server)
{
    int status = 0;
    if (!server)
        return;
    kill(server->pid, SIGQUIT); /* it ends its children, and does not tidy up */
    must(spawn_reap(server->pid, 20000, &status));
    postgres_remove(server);
}

const char *postgres_server_dir(const struct postgres_server *server)
{
    return server->dir;
}

struct postgres_link *postgres_open(const char *dir)
{
    struct postgres_link *link = calloc(1, sizeof *link);
    must(link);
    link->connection = postgres_connect(dir);
    if (PQstatus(link->connection) != CONNECTION_OK)
        fatal("postgres: %s", PQerrorMessage(link->connection));
    return link;
}

void postgres_close(struct postgres_link *link)
{
    PQclear(link->result);
    PQfinish(link->connection);
    free(link);
}

static void postgres_run(struct postgres_link *link, const char *format, va_list args)
{
    char statement[1024];
    must(vsnprintf(statement, sizeof statement, format, args) < (int)sizeof statement);
    PQclear(link->result);
    link->result = PQexec(link->connection, statement);
    ExecStatusType status = PQresultStatus(link->result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fatal("%s: %s", statement, PQerrorMessage(link->connection));
}

int postgres_do(struct postgres_link *link, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    postgres_run(link, format, args);
    va_end(args);
    return (int)strtol(PQcmdTuples(link->result), NULL, 10);
}

const char *postgres_str(struct postgres_link *link, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    postgres_run(link, format, args);
    va_end(args);
    return PQntuples(link->result) == 1 ? PQgetvalue(link->result, 0, 0) : "";
}

#else

struct postgres_server *postgres_server_start(void)
{
    skip("built without libpq");
    return NULL;
}

void postgres_server_stop(struct postgres_server *server)
{
    (void)server;
}

const char *postgres_server_dir(const struct postgres_server *server)
{
    (void)server;
    return "";
}

struct postgres_link *postgres_open(const char *dir)
{
    (void)dir;
    return NULL;
}

void postgres_close(struct postgres_link *link)
{
    (void)link;
}

int postgres_do(struct postgres_link *link, const char *format, ...)
{
    (void)link, (void)format;
    return 0;
}

const char *postgres_str(struct postgres_link *link, const char *format, ...)
{
    (void)link, (void)format;
    return "";
}

#endif
