/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* `hirelock exporter`, started at the test's server, and what it serves, by sockets of our own. */
#ifndef HL_TEST_SCRAPE_H
#define HL_TEST_SCRAPE_H

#include "cli/said.h"
#include "support/deadline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

enum { SCRAPE_SIZE = 1024 * 1024, SCRAPE_LONG_MS = 60000 };

struct exporter {
    struct said *said;
    int port;
};

/* Once it has printed its address. */
static inline struct exporter exporter_await(struct said *said)
{
    static const char begins[] = "http://127.0.0.1:";
    struct exporter exporter = {.said = said};
    struct deadline deadline = deadline_of_wait(SCRAPE_LONG_MS);

    while (!strchr(said_look(exporter.said)->out, '\n') && !deadline_is_over(deadline))
        deadline_nap();
    check_msg(strncmp(exporter.said->out, begins, strlen(begins)) == 0, "it printed '%s', '%s'",
              exporter.said->out, exporter.said->err);
    exporter.port = (int)strtol(exporter.said->out + strlen(begins), NULL, 10);
    return exporter;
}

/* words: behind "hirelock". */
static inline struct exporter exporter_start(const char *const *words)
{
    return exporter_await(said_start(NULL, words));
}

/* A free port; surveys that follow each other at once. */
#define EXPORTER(...)                                                                              \
    exporter_start((const char *const[]){"exporter", "--listen", "0", "--interval", "0.1",         \
                                         ##__VA_ARGS__, NULL})

static inline void exporter_end(struct exporter exporter, int signal)
{
    kill(exporter.said->pid, signal);
    said_end(exporter.said);
    check_msg(exporter.said->status == 0, "status %d: %s", exporter.said->status,
              exporter.said->err);
}

static inline int http_connect(struct exporter exporter)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)exporter.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval most = {SCRAPE_LONG_MS / 1000, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check_msg(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect: %s",
              strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    return fd;
}

/* Sends the bytes as they are, and reads until the other end closes. */
static inline const char *http_ask(struct exporter exporter, const char *request)
{
    static char text[SCRAPE_SIZE];
    int fd = http_connect(exporter);
    size_t length = 0;
    ssize_t got = send(fd, request, strlen(request), MSG_NOSIGNAL);

    while (got > 0 && length < sizeof text - 1) {
        got = recv(fd, text + length, sizeof text - 1 - length, 0);
        length += got > 0 ? (size_t)got : 0;
    }
    text[length] = '\0';
    close(fd);
    return text;
}

#define HTTP_GET(path) "GET " path " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"

/* The metrics; borrowed until the next request. */
static inline const char *scrape(struct exporter exporter)
{
    const char *text = http_ask(exporter, HTTP_GET("/metrics"));
    const char *body = strstr(text, "\r\n\r\n");

    check_msg(strncmp(text, "HTTP/1.1 200 ", 13) == 0 && body, "no metrics:\n%.300s", text);
    return body + 4;
}

/* The value of a series, `hirelock_locks{kind="lock"}`; NAN: it is not there. */
static inline double series_of(const char *metrics, const char *series)
{
    size_t length = strlen(series);

    for (const char *line = metrics; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, series, length) == 0 && line[length] == ' ')
            return strtod(line + length, NULL);
    }
    return NAN;
}

static inline void await_series(struct exporter exporter, const char *series, double value)
{
    struct deadline deadline = deadline_of_wait(SCRAPE_LONG_MS);

    while (series_of(scrape(exporter), series) != value && !deadline_is_over(deadline))
        deadline_nap();
    double last = series_of(scrape(exporter), series);
    check_msg(last == value, "%s is %g, not %g; %s", series, last, value,
              said_look(exporter.said)->err);
}

/* A counter reaches it, and may go on. */
static inline void await_count(struct exporter exporter, const char *series, double count)
{
    struct deadline deadline = deadline_of_wait(SCRAPE_LONG_MS);

    while (!(series_of(scrape(exporter), series) >= count) && !deadline_is_over(deadline))
        deadline_nap();
    check_msg(series_of(scrape(exporter), series) >= count, "%s is less than %g; %s", series, count,
              said_look(exporter.said)->err);
}

/* A survey that began after the call has succeeded. */
static inline void await_survey(struct exporter exporter)
{
    static const char series[] = "hirelock_surveys_total{result=\"ok\"}";

    await_count(exporter, series, series_of(scrape(exporter), series) + 2);
}

#define expect_series(metrics, series, value)                                                      \
    check_msg(series_of(metrics, series) == (value), "%s is %g", series, series_of(metrics, series))

static inline int count_of(const char *text, const char *part)
{
    int count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

#endif
