/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Result codes in words, and hl_error. */
#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

bool hl_err_is_retriable(int code)
{
    switch (code) {
    case HL_EBUSY:
    case HL_ETIMEDOUT:
    case HL_EUNKNOWN:
    case HL_ENOMEM:
    case HL_ECONN:
    case HL_ESERVER:
        return true;
    default:
        return false;
    }
}

void hli_error_set(hl_error *err, int code, const char *format, ...)
{
    va_list args;

    if (!err)
        return;
    err->code = code;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
}

void hli_error_wrap(hl_error *err, const char *format, ...)
{
    char whole[2 * sizeof(err->text)];
    va_list args;

    if (!err)
        return;
    va_start(args, format);
    int length = vsnprintf(whole, sizeof(err->text), format, args);
    va_end(args);
    size_t used = length < 0 ? 0 : strlen(whole);
    snprintf(whole + used, sizeof(whole) - used, ": %s", err->text);
    whole[sizeof(err->text) - 1] = '\0';
    memcpy(err->text, whole, sizeof(err->text));
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
