/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The log of a redis-server: shown when the server fails, and scanned for crashes at the end. */
#ifndef HL_TEST_REDIS_LOG_H
#define HL_TEST_REDIS_LOG_H

#include <stdbool.h>

bool redis_log_contains(const char *path, const char *text);
int redis_log_count(const char *path, const char *text); /* lines with this text */
bool redis_log_reports_crash(const char *path); /* bug report, failed assertion, sanitizer */
void redis_log_show(const char *path);          /* the last 40 lines, to stderr */

#endif
