/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The options that have a word: what a URL's query and the environment may set, with default and
 * limits. The checks of hl_client_options, the words and docs/options.md all come from this table.
 *
 * Without a word are callbacks, their arguments, and HL_CLIENT_DISPATCH, since only the program
 * knows of its functions and its loop; and the login, which stands before the host of a URL.
 */
#ifndef HLI_CLIENT_OPTION_TABLE_H
#define HLI_CLIENT_OPTION_TABLE_H

#include <hirelock/client.h>

enum hli_option_kind {
    HLI_OPTION_MS,       /* a time, in an int64_t of milliseconds */
    HLI_OPTION_US,       /* the same, of microseconds */
    HLI_OPTION_NUMBER,   /* an int */
    HLI_OPTION_REPLICAS, /* an int, or "majority" or "none" */
    HLI_OPTION_LEVEL,    /* an hl_log_level by its name */
    HLI_OPTION_TEXT,     /* a string */
    HLI_OPTION_FLAG,     /* a bit of `flags` */
};

struct hli_option {
    const char *name; /* its word; a time's field has _ms or _us behind it */
    enum hli_option_kind kind;
    size_t at;                     /* of the field in hl_client_options */
    int64_t standard, least, most; /* the default and the limits, in the field's unit */
    unsigned flag;
};

enum { HLI_OPTIONS = 31 };
extern const struct hli_option hli_option_table[HLI_OPTIONS];

/* NULL: there is none of this name. */
const struct hli_option *hli_option_of(const char *name);

/* The name that is meant by a misspelt one; NULL: none is like it. */
const char *hli_option_meant(const char *name);

/* A value as a word: "30s", "500ms", "16", "majority", "warning". */
enum { HLI_OPTION_VALUE_SIZE = 32 };
void hli_option_write(const struct hli_option *option, int64_t value,
                      char text[HLI_OPTION_VALUE_SIZE]);

/* The number in the field, of a text 1 if there is one, of a flag whether it is set. */
int64_t hli_option_get(const struct hli_option *option, const hl_client_options *options);

/* Of all but texts. */
void hli_option_set(const struct hli_option *option, hl_client_options *options, int64_t value);

#endif
