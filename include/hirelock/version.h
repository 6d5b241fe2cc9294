/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The version of the library, and the two attributes that its declarations carry. */
#ifndef HIRELOCK_VERSION_H
#define HIRELOCK_VERSION_H

#define HL_VERSION_MAJOR 0
#define HL_VERSION_MINOR 1
#define HL_VERSION_PATCH 0

/* Part of the library's ABI. */
#define HL_API __attribute__((visibility("default")))
/* Ignoring this result is always a bug. */
#define HL_MUST_CHECK __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of the library that is loaded, "0.1.0"; the macros above are the one compiled
 * against.
 *
 * Threads: any.
 * Returns: a constant string.
 */
HL_API const char *hl_version(void);

#ifdef __cplusplus
}
#endif
#endif
