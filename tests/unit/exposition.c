/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The text format of Prometheus: escapes, seconds, and buffers that are too short. */

#include "base/exposition.h"

#include "support/test.h"

#include <stdio.h>
#include <string.h>

static char written[512];

static struct hli_exposition to(char *buffer, size_t size)
{
    return (struct hli_exposition){.buffer = buffer, .size = size};
}

static const char *value_written(const char *value)
{
    struct hli_exposition text = to(written, sizeof written);

    hli_exposition_begin(&text, "m", "");
    hli_exposition_label(&text, "l", value);
    hli_exposition_end(&text, 7);
    check_int(strlen(written), text.length);
    return written;
}

Test(exposition, escapes_what_would_end_a_label)
{
    check_str(value_written("plain"), "m{l=\"plain\"} 7\n");
    check_str(value_written(""), "m{l=\"\"} 7\n");
    check_str(value_written("a\"b\\c\nd"), "m{l=\"a\\\"b\\\\c\\nd\"} 7\n");
    check_str(value_written("{,}= #\t"), "m{l=\"{,}= #\t\"} 7\n");
}

Test(exposition, writes_utf8_only)
{
    static const struct {
        const char *bytes, *shown;
    } all[] = {
        {"\xc3\xa4", "\xc3\xa4"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xff", "?"},
        {"a\x80z", "a?z"},
        {"\xc3", "?"},
        {"\xc3\"", "?\\\""},
        {"\xc0\x80", "??"},          /* a longer form of NUL */
        {"\xe0\x80\x80", "???"},     /* another */
        {"\xed\xa0\x80", "???"},     /* a surrogate */
        {"\xf4\x90\x80\x80", "????"} /* beyond U+10FFFF */
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char wanted[128], *at = wanted;
        at += sprintf(at, "m{l=\"");
        for (const char *from = all[i].shown; *from; from++)
            at += *from == '?' ? sprintf(at, "\xef\xbf\xbd") : sprintf(at, "%c", *from);
        sprintf(at, "\"} 7\n");
        check_str(value_written(all[i].bytes), wanted);
    }
}

Test(exposition, writes_microseconds_as_seconds_exactly)
{
    static const struct {
        uint64_t us;
        const char *seconds;
    } all[] = {{0, "0"},
               {1, "0.000001"},
               {512, "0.000512"},
               {1000000, "1"},
               {1048576, "1.048576"},
               {UINT64_C(1) << 30, "1073.741824"},
               {10000000, "10"},
               {UINT64_MAX, "18446744073709.551615"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char seconds[HLI_EXPOSITION_SECONDS];
        hli_exposition_seconds(all[i].us, seconds);
        check_str(seconds, all[i].seconds);
    }
}

Test(exposition, has_labels_or_none)
{
    struct hli_exposition text = to(written, sizeof written);

    hli_exposition_head(&text, "m", "counter", "Help.");
    hli_exposition_begin(&text, "m", "_sum");
    hli_exposition_end_seconds(&text, 1500000);
    hli_exposition_begin(&text, "m", "");
    hli_exposition_label(&text, "a", "1");
    hli_exposition_label(&text, "b", "2");
    hli_exposition_end(&text, UINT64_MAX);
    check_str(written, "# HELP m Help.\n# TYPE m counter\nm_sum 1.5\n"
                       "m{a=\"1\",b=\"2\"} 18446744073709551615\n");
}

Test(exposition, counts_what_has_no_room_and_writes_nothing_behind_its_buffer)
{
    char whole[64], cut[65];
    struct hli_exposition text = to(whole, sizeof whole);

    hli_exposition_begin(&text, "metric", "_total");
    hli_exposition_label(&text, "label", "value");
    hli_exposition_end(&text, 12);
    for (size_t size = 0; size < sizeof whole; size++) {
        memset(cut, '#', sizeof cut);
        struct hli_exposition part = to(size > 0 ? cut : NULL, size);
        hli_exposition_begin(&part, "metric", "_total");
        hli_exposition_label(&part, "label", "value");
        hli_exposition_end(&part, 12);
        check_int(part.length, text.length);
        check_int(cut[size], '#');
        if (size > 0) {
            size_t length = size - 1 < text.length ? size - 1 : text.length;
            check_int(strlen(cut), length);
            check_int(strncmp(cut, whole, length), 0);
        }
    }
}

Test(exposition, knows_the_names_of_labels)
{
    static const char *const good[] = {"a", "_a", "A_1", "client"};
    static const char *const bad[] = {"", "1a", "__a", "a-b", "a b", "a\"", "\xc3\xa4", "a:b"};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        check_msg(hli_exposition_is_label(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_msg(!hli_exposition_is_label(bad[i]), "%s", bad[i]);
}
