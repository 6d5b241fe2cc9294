/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const struct options options_default = {.url = "redis://127.0.0.1",
                                               .processes = 4,
                                               .threads = 4,
                                               .stock = 10000,
                                               .lease_ms = 2000,
                                               .kill = true};

static void options_help(void)
{
    printf("Sells one stock from many processes at once, without a lock and then with one.\n"
           "\n"
           "  --url URL        the Redis server (REDIS_URL of the environment, or %s)\n"
           "  --lock-url URL   the server of the lock, if it is another one, or reached by TLS\n"
           "  --ca FILE        the authority of its certificate, for rediss://\n"
           "  --processes N    how many processes sell (%ld)\n"
           "  --threads N      threads of each process (%ld)\n"
           "  --stock N        units to sell (%ld)\n"
           "  --lease-ms N     the lock's lease; renewed while its holder lives (%ld)\n"
           "  --[no-]kill      kill one of several processes while it holds the lock (%s)\n"
           "  --kill-pid PID   kill this process instead: the lock's server, of which there is "
           "another\n"
           "  --json           one JSON object instead of the table\n"
           "  --help           this text\n"
           "\n"
           "Exit code: 0 when the sale with the lock neither oversold nor lost a unit, else 1;\n"
           "2 when it could not be run.\n",
           options_default.url, options_default.processes, options_default.threads,
           options_default.stock, options_default.lease_ms,
           options_default.kill ? "--kill" : "--no-kill");
}

static bool options_number(const char *what, long *value, long min, long max)
{
    char *end = NULL;

    errno = 0;
    *value = strtol(optarg, &end, 10);
    if (errno == 0 && end != optarg && *end == '\0' && *value >= min && *value <= max)
        return true;
    fprintf(stderr, "stock_deduction: --%s is not a number from %ld to %ld: %s\n", what, min, max,
            optarg);
    return false;
}

static bool options_take(struct options *options, int letter)
{
    switch (letter) {
    case 'u':
        options->url = optarg;
        return true;
    case 'L':
        options->lock_url = optarg;
        return true;
    case 'c':
        options->ca = optarg;
        return true;
    case 'p':
        return options_number("processes", &options->processes, 1, OPTIONS_MAX_PROCESSES);
    case 't':
        return options_number("threads", &options->threads, 1, OPTIONS_MAX_THREADS);
    case 's':
        return options_number("stock", &options->stock, 1, 1000000);
    case 'l': /* much shorter, and a busy machine may not get round to renewing it */
        return options_number("lease-ms", &options->lease_ms, 100, 600000);
    case 'P':
        return options_number("kill-pid", &options->kill_pid, 2, INT32_MAX);
    case 'k':
    case 'K':
        options->kill = letter == 'k';
        return true;
    case 'j':
        options->json = true;
        return true;
    default: /* getopt has said what is wrong */
        fprintf(stderr, "stock_deduction: see --help\n");
        return false;
    }
}

enum options_verdict options_read(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"url", required_argument, NULL, 'u'},
                                          {"processes", required_argument, NULL, 'p'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"stock", required_argument, NULL, 's'},
                                          {"lease-ms", required_argument, NULL, 'l'},
                                          {"kill", no_argument, NULL, 'k'},
                                          {"no-kill", no_argument, NULL, 'K'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"lock-url", required_argument, NULL, 'L'},
                                          {"ca", required_argument, NULL, 'c'},
                                          {"kill-pid", required_argument, NULL, 'P'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int letter = 0;

    *options = options_default;
    if (getenv("REDIS_URL"))
        options->url = getenv("REDIS_URL");
    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (letter == 'h') {
            options_help();
            return OPTIONS_HELP;
        }
        if (!options_take(options, letter))
            return OPTIONS_WRONG;
    }
    if (optind < argc) {
        fprintf(stderr, "stock_deduction: %s is no option; see --help\n", argv[optind]);
        return OPTIONS_WRONG;
    }
    return OPTIONS_RUN;
}
