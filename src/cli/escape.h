/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Bytes of the server, made safe to be shown: any program may have written them. */
#ifndef CLI_ESCAPE_H
#define CLI_ESCAPE_H

#include <json-c/json.h>
#include <stddef.h>

/* A string of UTF-8. What a terminal might obey (control characters, also those of directions), and
 * bytes that are no UTF-8, are "\xNN"; a backslash is "\\". NULL when memory is out. */
json_object *cli_escaped(const char *bytes, size_t length);

/* The same text for a terminal of this locale: if that has no UTF-8, all that is not ASCII is
 * "\xNN". Owned by the caller; NULL when memory is out. */
char *cli_for_locale(const char *text);

#endif
