/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Counts this process's descriptors and threads, for tests of leaks. */
#ifndef HL_TEST_CENSUS_H
#define HL_TEST_CENSUS_H

#include <stdbool.h>

int census_files(void);                        /* open descriptors */
int census_sockets(void);                      /* open sockets */
int census_threads(void);                      /* all threads */
int census_threads_named(const char *prefix);  /* "hirelock-loop", or "hirelock" for all of ours */
int census_files_without_cloexec(int from_fd); /* at or above from_fd */

/* True soon after the last thread of hirelock was joined: /proc shows it for a moment longer. */
bool census_waits_for_no_thread(void);

#endif
