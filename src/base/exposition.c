/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The text format of Prometheus: lines, escapes, UTF-8. */
#include "base/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* U+FFFD, in the place of a byte that is no UTF-8: one such byte would fail the whole scrape. */
static const char exposition_no_character[] = "\xef\xbf\xbd";

/* The last byte of the buffer stays for the NUL. */
static void exposition_put(struct hli_exposition *text, const char *bytes, size_t length)
{
    size_t room = text->size > text->length ? text->size - text->length - 1 : 0;
    size_t fits = length < room ? length : room;

    if (text->size > text->length) {
        memcpy(text->buffer + text->length, bytes, fits);
        text->buffer[text->length + fits] = '\0';
    }
    text->length += length;
}

static void exposition_put_all(struct hli_exposition *text, const char *const *words)
{
    for (; *words; words++)
        exposition_put(text, *words, strlen(*words));
}

#define PUT(text, ...) exposition_put_all((text), (const char *const[]){__VA_ARGS__, NULL})

void hli_exposition_head(struct hli_exposition *text, const char *name, const char *type,
                         const char *help)
{
    PUT(text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void hli_exposition_begin(struct hli_exposition *text, const char *name, const char *suffix)
{
    text->has_label = false;
    PUT(text, name, suffix);
}

/* The length of the character that stands there, by RFC 3629, 4; 0 if none does. */
static size_t exposition_character(const unsigned char *at)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t more = at[0] < 0x80                     ? 0
                  : at[0] >= 0xc2 && at[0] <= 0xdf ? 1
                  : at[0] >= 0xe0 && at[0] <= 0xef ? 2
                  : at[0] >= 0xf0 && at[0] <= 0xf4 ? 3
                                                   : 4;

    if (more == 4)
        return 0;
    low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : low;   /* no longer form of a shorter one */
    high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : high; /* no surrogate, at most U+10FFFF */
    for (size_t i = 1; i <= more; i++, low = 0x80, high = 0xbf)
        if (at[i] < low || at[i] > high)
            return 0;
    return more + 1;
}

/* The next character of the value as it is written, with its length. */
static const char *exposition_next(const char **value, size_t *ret_length)
{
    const char *at = *value;
    size_t length = exposition_character((const unsigned char *)at);

    *value += length > 0 ? length : 1;
    *ret_length = length > 0 ? length : strlen(exposition_no_character);
    return length > 0 ? at : exposition_no_character;
}

static void exposition_put_value(struct hli_exposition *text, const char *value)
{
    while (*value) {
        size_t length;
        const char *at = exposition_next(&value, &length);
        if (*at == '\n')
            PUT(text, "\\n");
        else if (*at == '"' || *at == '\\')
            exposition_put(text, (const char[]){'\\', *at}, 2);
        else
            exposition_put(text, at, length);
    }
}

bool hli_exposition_is_same(const char *value, const char *other)
{
    while (*value && *other) {
        size_t length, other_length;
        const char *at = exposition_next(&value, &length);
        const char *other_at = exposition_next(&other, &other_length);
        if (length != other_length || memcmp(at, other_at, length) != 0)
            return false;
    }
    return *value == *other;
}

void hli_exposition_label(struct hli_exposition *text, const char *name, const char *value)
{
    PUT(text, text->has_label ? "," : "{", name, "=\"");
    exposition_put_value(text, value);
    PUT(text, "\"");
    text->has_label = true;
}

void hli_exposition_labels(struct hli_exposition *text, const hl_label *labels)
{
    for (; labels && labels->name; labels++)
        hli_exposition_label(text, labels->name, labels->value);
}

static void exposition_end(struct hli_exposition *text, const char *number)
{
    PUT(text, text->has_label ? "} " : " ", number, "\n");
}

void hli_exposition_end(struct hli_exposition *text, uint64_t value)
{
    char number[24];

    snprintf(number, sizeof(number), "%" PRIu64, value);
    exposition_end(text, number);
}

void hli_exposition_end_seconds(struct hli_exposition *text, uint64_t us)
{
    char seconds[HLI_EXPOSITION_SECONDS];

    hli_exposition_seconds(us, seconds);
    exposition_end(text, seconds);
}

static void exposition_begin(struct hli_exposition *text, const char *name, const char *suffix,
                             const hl_label *labels)
{
    hli_exposition_begin(text, name, suffix);
    hli_exposition_labels(text, labels);
}

/* The buckets were read one by one while others wrote, so what they add up to is the count that
 * fits them. A sample of just 2^i microseconds is in the next bucket than `le` says. */
void hli_exposition_histogram(struct hli_exposition *text, const char *name, const hl_label *labels,
                              const hl_histogram *histogram)
{
    enum { BUCKETS = sizeof(histogram->bucket) / sizeof(histogram->bucket[0]) };
    uint64_t sum = 0;

    for (unsigned i = 0; i < BUCKETS; i++) {
        char le[HLI_EXPOSITION_SECONDS] = "+Inf";
        if (i + 1 < BUCKETS)
            hli_exposition_seconds(UINT64_C(1) << i, le);
        sum += histogram->bucket[i];
        exposition_begin(text, name, "_bucket", labels);
        hli_exposition_label(text, "le", le);
        hli_exposition_end(text, sum);
    }
    exposition_begin(text, name, "_sum", labels);
    hli_exposition_end_seconds(text, histogram->sum_us);
    exposition_begin(text, name, "_count", labels);
    hli_exposition_end(text, sum);
}

void hli_exposition_add(struct hli_exposition *text, const char *lines)
{
    PUT(text, lines);
}

void hli_exposition_seconds(uint64_t us, char seconds[HLI_EXPOSITION_SECONDS])
{
    int length = snprintf(seconds, HLI_EXPOSITION_SECONDS, "%" PRIu64 ".%06u", us / 1000000,
                          (unsigned)(us % 1000000));

    while (seconds[length - 1] == '0')
        seconds[--length] = '\0';
    if (seconds[length - 1] == '.')
        seconds[length - 1] = '\0';
}

bool hli_exposition_is_label(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t length = strspn(name, letters);
    bool is_digit = name[0] >= '0' && name[0] <= '9';

    return length > 0 && name[length] == '\0' && !is_digit && strncmp(name, "__", 2) != 0;
}
