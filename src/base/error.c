/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Result codes in words, and hl_error. */
#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What error.h promises for every version. */
_Static_assert(sizeof(hl_error) == 768 && offsetof(hl_error, busy) == 384, "hl_error has its room");

enum error_class { OUTCOME, FAULT };

static const struct error_entry {
    int code;
    const char *name, *text;
    enum error_class class;
} error_table[] = {
#define X(name, value, text, class) {value, "HL_" #name, text, class},
    HL_ERROR_MAP(X)
#undef X
        {HL_OK, "HL_OK", "success", OUTCOME},
};

static const struct error_entry *error_find(int code)
{
    for (size_t i = 0; i < sizeof(error_table) / sizeof(error_table[0]); i++)
        if (error_table[i].code == code)
            return &error_table[i];
    return NULL;
}

const char *hl_err_text(int code)
{
    const struct error_entry *entry = error_find(code);

    return entry ? entry->text : "unknown code";
}

const char *hl_err_name(int code)
{
    const struct error_entry *entry = error_find(code);

    return entry ? entry->name : "HL_E?";
}

bool hl_err_is_outcome(int code)
{
    const struct error_entry *entry = error_find(code);

    return entry && entry->code != HL_OK && entry->class == OUTCOME;
}

bool hl_err_is_transient(int code)
{
    switch (code) {
    case HL_EBUSY:
    case HL_ETIMEDOUT:
    case HL_ENOMEM:
    case HL_ECONN:
    case HL_ESERVER:
    case HL_EREPLICAS:
        return true;
    default:
        return false;
    }
}

bool hl_err_is_in_doubt(int code)
{
    return code == HL_EINDOUBT;
}

/* The error of this thread's last failed call that was given no hl_error. */
static _Thread_local hl_error error_last;

const hl_error *hl_err_last(void)
{
    return &error_last;
}

void hli_error_set(hl_error *err, int code, const char *format, ...)
{
    va_list args;

    if (!err)
        err = &error_last;
    *err = (hl_error)HL_ERROR_INIT;
    err->code = code;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
}

const char *hli_error_reason(char *text, size_t size, int problem)
{
    snprintf(text, size, "%s", strerrordesc_np(problem));
    if (islower((unsigned char)text[1]))
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

const char *hli_error_escape(char *text, size_t size, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    size_t used = 0;

    for (size_t i = 0; i < length && used + 5 <= size; i++) {
        if (isprint(byte[i]) && byte[i] != '\'' && byte[i] != '\\')
            text[used++] = (char)byte[i];
        else
            used += (size_t)snprintf(text + used, size - used, "\\x%02x", byte[i]);
    }
    text[used] = '\0';
    return text;
}
