/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What this process has open and running, for tests of leaks. */
#ifndef HL_TEST_CENSUS_H
#define HL_TEST_CENSUS_H

int census_files(void);                        /* open descriptors */
int census_sockets(void);                      /* of them, sockets */
int census_threads(void);                      /* all threads */
int census_threads_named(const char *prefix);  /* "hirelock-loop", or "hirelock" for all of ours */
int census_files_without_cloexec(int from_fd); /* at or above from_fd */

#endif
