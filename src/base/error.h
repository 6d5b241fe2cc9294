/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Filling hl_error: a sentence with its context in front, never a secret. */
#ifndef HLI_BASE_ERROR_H
#define HLI_BASE_ERROR_H

#include <hirelock/error.h>

/* Sets err (NULL is fine) and returns code, so that a failing call is one line. A macro, for
 * whoever reads the caller, the analyzer included, is to see what is returned. */
#define hli_fail(err, code, ...) (hli_error_set((err), (code), __VA_ARGS__), hli_failed(code))
static inline int hli_failed(int code)
{
    return code;
}
void hli_error_set(hl_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of what err says; keeps the code. */
void hli_error_wrap(hl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Copies bytes as printable text: control bytes, quotes and backslashes become \xNN; cut to fit. */
const char *hli_error_escape(char *text, size_t size, const void *bytes, size_t length);

#endif
