/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Typing errors are counted as by F. J. Damerau, "A technique for computer detection and correction
 * of spelling errors", 1964: a letter too many, missing, wrong, or two letters exchanged. */
#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { SUGGEST_ERRORS = 2, SUGGEST_LETTERS = 24 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The errors between two words of at most SUGGEST_LETTERS letters; the rows of the table are the
 * beginnings of `a`, its columns those of `b`. */
static int suggest_errors(const char *a, const char *b)
{
    int table[SUGGEST_LETTERS + 1][SUGGEST_LETTERS + 1];
    int rows = (int)strlen(a), columns = (int)strlen(b);

    for (int i = 0; i <= rows; i++)
        for (int j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            bool is_same = a[i - 1] == b[j - 1];
            bool is_exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            table[i][j] =
                least(table[i - 1][j - 1] + !is_same, 1 + least(table[i - 1][j], table[i][j - 1]));
            if (is_exchanged)
                table[i][j] = least(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[rows][columns];
}

const char *hli_suggest(const char *typed, const char *const *words, size_t count)
{
    const char *found = NULL;
    int fewest = SUGGEST_ERRORS + 1;

    if (strlen(typed) > SUGGEST_LETTERS)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        int errors = strlen(words[i]) > SUGGEST_LETTERS ? fewest : suggest_errors(typed, words[i]);
        if (errors < fewest && errors < (int)strlen(words[i])) {
            fewest = errors;
            found = words[i];
        }
    }
    return found;
}
