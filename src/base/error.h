/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Filling hl_error: one sentence, with its context in front, and never with a secret. */
#ifndef HLI_BASE_ERROR_H
#define HLI_BASE_ERROR_H

#include <hirelock/error.h>

/* Sets err (NULL: that of hl_err_last) and returns code, so that a failing call is one line. It is
 * a macro so that the analyzer sees the returned code in the caller. */
#define hli_fail(err, code, ...) (hli_error_set((err), (code), __VA_ARGS__), hli_failed(code))
static inline int hli_failed(int code)
{
    return code;
}
#define hli_no_memory(err) hli_fail((err), HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM))
void hli_error_set(hl_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The text of an errno, beginning in lower case, to follow a colon. Returns text. */
const char *hli_error_reason(char *text, size_t size, int problem);

/* Copies bytes as printable text: control bytes, quotes and backslashes become \xNN; cut to fit. */
const char *hli_error_escape(char *text, size_t size, const void *bytes, size_t length);

#endif
