/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Names: those whose channel lies in the slot of their key, as cluster computes it. */

#include "lease/state/name.h"

#include "base/random.h"
#include "support/test.h"

#include <string.h>

static const struct braces {
    const char *text;
    bool is_valid;
} braces[] = {
    {"a", true},     {"stock:42", true}, {"{a}", true},   {"x{a}y", true}, {"{a}{b}", true},
    {"}{x}", true},  {"a{b}c}", true},   {"{a{b}", true}, {" ", true},     {"\n%s'", true},
    {"{a}{", true},  {"", false},        {"{", false},    {"}", false},    {"a{", false},
    {"a}", false},   {"}a", false},      {"{}", false},   {"a{}b", false}, {"{}a{b}", false},
    {"a}b{", false}, {"}{", false},      {"{a", false},   {"{{", false},   {"a{}", false},
};

/* The cyclic redundancy check of Redis Cluster (XMODEM: polynomial 1021, no reflection). */
static unsigned crc16(const char *bytes, size_t length)
{
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = ((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

/* By the cluster specification: what stands between the first { and the first } after it, unless
 * that is nothing. */
static unsigned slot_of(const char *key, size_t length)
{
    for (size_t open = 0; open < length; open++) {
        if (key[open] != '{')
            continue;
        for (size_t close = open + 1; close < length; close++)
            if (key[close] == '}')
                return (close > open + 1 ? crc16(key + open + 1, close - open - 1)
                                         : crc16(key, length)) %
                       16384;
        break;
    }
    return crc16(key, length) % 16384;
}

static bool is_valid(const char *name, size_t length)
{
    return hli_name_check("name", name, length, NULL) == 0;
}

/* Redisson's rule: braces around the name, unless it has an opening one. */
static unsigned channel_slot(const char *name, size_t length)
{
    char channel[700];
    bool has_brace = memchr(name, '{', length) != NULL;
    int written = snprintf(channel, sizeof channel, "redisson_lock__channel:%s%.*s%s",
                           has_brace ? "" : "{", (int)length, name, has_brace ? "" : "}");
    return slot_of(channel, (size_t)written);
}

Test(name, is_judged_by_its_braces)
{
    for (size_t i = 0; i < sizeof braces / sizeof braces[0]; i++)
        check_msg(is_valid(braces[i].text, strlen(braces[i].text)) == braces[i].is_valid, "'%s'",
                  braces[i].text);
}

Test(name, agrees_with_the_slots_that_cluster_computes)
{
    int valid = 0;
    check_int(slot_of("123456789", 9), 0x31c3);
    for (int i = 0; i < 20000; i++) {
        char name[13];
        size_t length = 1 + (size_t)hli_random_upto(11);
        for (size_t k = 0; k < length; k++)
            name[k] = "{}ab"[hli_random_upto(3)];
        name[length] = '\0';
        bool fits = is_valid(name, length);
        bool is_one_slot = slot_of(name, length) == channel_slot(name, length);
        valid += fits;
        /* Different tags fall into one slot by chance, once in 16,384: that is refused too. */
        check_msg(!fits || is_one_slot, "'%s' is split", name);
    }
    check(valid > 1000 && valid < 19000);
}

Test(name, is_refused_only_where_the_slots_differ)
{
    for (size_t i = 0; i < sizeof braces / sizeof braces[0]; i++) {
        const char *text = braces[i].text;
        if (text[0] != '\0')
            check_msg((slot_of(text, strlen(text)) == channel_slot(text, strlen(text))) ==
                          braces[i].is_valid,
                      "'%s'", text);
    }
}

Test(name, of_a_lock_is_none_of_the_keys_beside_one)
{
    static const char *const ours[] = {
        "hirelock_queue:{a}",       "hirelock_fence:{a}", "hirelock_note:{a}:A:1",
        "redisson_lock_token:{a}",  "hirelock_data",      "redisson_lock_queue:{a}",
        "redisson_lock_timeout:{a}"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        check_msg(!is_valid(ours[i], strlen(ours[i])), "%s", ours[i]);
    check(is_valid("hirelock_fenced", 15));
}

Test(name, has_1_to_512_bytes_of_any_kind)
{
    char name[HLI_NAME_LIMIT + 1];
    memset(name, 'n', sizeof name);
    check(!is_valid(name, 0));
    check(is_valid(name, 1));
    check(is_valid(name, HLI_NAME_LIMIT));
    check(!is_valid(name, HLI_NAME_LIMIT + 1));
    for (int c = 0; c < 256; c++) {
        name[1] = (char)c;
        check(is_valid(name, 3) == (c != '{' && c != '}'));
    }
}
