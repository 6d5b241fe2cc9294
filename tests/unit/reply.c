/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Replies from bytes, in any pieces; and what no honest server says. */

#include "redis/reply.h"

#include <hirelock/error.h>

#include "support/test.h"

#include <string.h>

static const char nested[] = "*4\r\n:0\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n+OK\r\n-ERR no\r\n";

static void check_nested(const struct hli_reply *reply)
{
    int64_t value = -1;
    check(reply != NULL);
    check_int(reply->kind, HLI_REPLY_ARRAY);
    check_int(reply->length, 4);
    check(hli_reply_integer_at(reply, 0, &value));
    check_int(value, 0);
    check_int(hli_reply_text_at(reply, 1)->length, 3);
    check_str(hli_reply_text_at(reply, 1)->text, "a\r\n");
    check_int(hli_reply_item(reply, 2)->kind, HLI_REPLY_NIL);
    const struct hli_reply *inner = hli_reply_item(reply, 3);
    check_int(hli_reply_item(inner, 0)->kind, HLI_REPLY_STATUS);
    check_str(hli_reply_item(inner, 1)->text, "ERR no");
}

/* The verdict over all bytes, fed at once: 0, or the first error. Replies are counted. */
static int parse(const char *bytes, size_t length, int *ret_replies)
{
    struct hli_parser *parser = hli_parser_new(NULL);
    struct hli_reply *reply = NULL;
    *ret_replies = 0;
    int rc = hli_parser_feed(parser, bytes, length);
    while (rc == 0 && (rc = hli_parser_next(parser, &reply)) == 0 && reply) {
        ++*ret_replies;
        hli_reply_free(reply);
    }
    hli_parser_free(parser);
    return rc;
}

static void check_refused(const char *bytes)
{
    int replies;
    int rc = parse(bytes, strlen(bytes), &replies);
    check_msg(rc == HL_EPROTO && replies == 0, "%s: %s", bytes, hl_err_name(rc));
}

Test(reply, is_the_same_wherever_its_bytes_are_split)
{
    size_t length = sizeof nested - 1;
    for (size_t cut = 0; cut <= length; cut++) {
        struct hli_parser *parser = hli_parser_new(NULL);
        struct hli_reply *reply = NULL;
        check_int(hli_parser_feed(parser, nested, cut), 0);
        if (cut < length) {
            check_int(hli_parser_next(parser, &reply), 0);
            check(reply == NULL);
            check_int(hli_parser_feed(parser, nested + cut, length - cut), 0);
        }
        check_int(hli_parser_next(parser, &reply), 0);
        check_nested(reply);
        hli_reply_free(reply);
        hli_parser_free(parser);
    }
}

Test(reply, comes_byte_by_byte_too)
{
    struct hli_parser *parser = hli_parser_new(NULL);
    struct hli_reply *reply = NULL;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof nested - 1; i++) {
            check(reply == NULL);
            check_int(hli_parser_feed(parser, nested + i, 1), 0);
            check_int(hli_parser_next(parser, &reply), 0);
        }
        check_nested(reply);
        hli_reply_free(reply);
        reply = NULL;
    }
    hli_parser_free(parser);
}

Test(reply, may_be_followed_by_others)
{
    static const char many[] = ":1\r\n+PONG\r\n$0\r\n\r\n*0\r\n*-1\r\n-ERR\r\n";
    int replies;
    check_int(parse(many, sizeof many - 1, &replies), 0);
    check_int(replies, 6);
}

Test(reply, of_many_in_one_piece_is_no_flood)
{
    static char many[200000];
    int replies;
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = ":7\r\n"[i % 4];
    check_int(parse(many, sizeof many, &replies), 0);
    check_int(replies, sizeof many / 4);
}

Test(reply, is_refused_when_it_is_junk)
{
    check_refused("HTTP/1.1 400 Bad Request\r\n\r\n");
    check_refused("SSH-2.0-OpenSSH_9.2\r\n");
    check_refused("\r\n");
    check_refused("*x\r\n");
    check_refused("$x\r\n");
    check_refused(":12x\r\n");
    check_refused("*1\r\n@\r\n");
}

Test(reply, is_refused_when_it_is_of_resp3)
{
    check_refused("%1\r\n+a\r\n:1\r\n");
    check_refused("#t\r\n");
    check_refused(",1.5\r\n");
    check_refused("*1\r\n#t\r\n");
}

Test(reply, is_refused_when_it_is_giant)
{
    static char giant[2000000];
    int replies;
    memset(giant, 'x', sizeof giant);
    giant[snprintf(giant, sizeof giant, "$2147483640\r\n")] = 'x';
    check_int(parse(giant, sizeof giant, &replies), HL_EPROTO);
    memset(giant, 'x', sizeof giant);
    giant[0] = '+';
    check_int(parse(giant, sizeof giant, &replies), HL_EPROTO);
    check_int(replies, 0);
}

/* The first of two replies, of which the second is ":7". */
static struct hli_reply *first_of_two(const char *head, const char *piece, size_t times)
{
    struct hli_parser *parser = hli_parser_new(NULL);
    struct hli_reply *first = NULL, *second = NULL;
    check_int(hli_parser_feed(parser, head, strlen(head)), 0);
    for (size_t i = 0; i < times && !first; i++) {
        check_int(hli_parser_feed(parser, piece, strlen(piece)), 0);
        check_int(hli_parser_next(parser, &first), 0);
    }
    check(first != NULL);
    check_int(hli_parser_feed(parser, ":7\r\n", 4), 0);
    check_int(hli_parser_next(parser, &second), 0);
    check(second && second->kind == HLI_REPLY_INTEGER && second->integer == 7);
    check(!second->is_beyond);
    hli_reply_free(second);
    hli_parser_free(parser);
    return first;
}

Test(reply, that_is_too_large_is_read_over_and_says_so)
{
    static const char *const heads[] = {"*3\r\n:1\r\n$100000\r\n", "*3\r\n$2\r\nab\r\n+"};
    static char text[100000 + 16];
    struct hli_reply *reply;
    memset(text, 'x', 100000);
    strcpy(text + 100000, "\r\n:5\r\n");
    for (size_t i = 0; i < 2; i++) {
        reply = first_of_two(heads[i], text, 1);
        check(reply->is_beyond);
        check_int(hli_reply_item(reply, 1)->kind, HLI_REPLY_BEYOND);
        check(hli_reply_text_at(reply, 1) == NULL);
        check_int(hli_reply_item(reply, 2)->integer, 5);
        hli_reply_free(reply);
    }
    reply = first_of_two("*3000\r\n", "*1\r\n$1\r\nx\r\n", 3000); /* too wide */
    check(reply->is_beyond && hli_reply_item(reply, 0) == NULL);
    hli_reply_free(reply);
    reply =
        first_of_two("*800\r\n", /* too much in all */
                     "$100\r\n0123456789012345678901234567890123456789012345678901234567890123456"
                     "789012345678901234567890123456789\r\n",
                     800);
    check(reply->is_beyond && reply->length == 800);
    check_int(hli_reply_item(reply, 0)->kind, HLI_REPLY_STRING);
    check_int(hli_reply_item(reply, 799)->kind, HLI_REPLY_BEYOND);
    hli_reply_free(reply);
}

Test(reply, is_refused_when_it_is_nested_deeply)
{
    static char deep[4 * 10000 + 1];
    for (size_t i = 0; i < sizeof deep - 1; i++)
        deep[i] = "*1\r\n"[i % 4];
    check_refused(deep);
    check_refused("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
}

static struct hli_reply *reply_of(const char *bytes)
{
    struct hli_parser *parser = hli_parser_new(NULL);
    struct hli_reply *reply = NULL;
    check_int(hli_parser_feed(parser, bytes, strlen(bytes)), 0);
    check_int(hli_parser_next(parser, &reply), 0);
    check(reply != NULL);
    hli_parser_free(parser);
    return reply;
}

#define SCRIPT_TAIL " script: 362bf792aa362bf792aa362bf792aa362bf792aa, on @user_script:9."

Test(reply, of_an_error_inside_a_script_leaves_out_the_place_and_nothing_else)
{
    static const char *const errors[] = {
        "OOM command not allowed.",
        "ERR ACL failure in script: User u has no permissions to run the 'hget' command"};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        char bytes[256];
        snprintf(bytes, sizeof bytes, "-%s" SCRIPT_TAIL "\r\n", errors[i]);
        struct hli_reply *reply = reply_of(bytes);
        check_str(reply->text, errors[i]);
        check_int(reply->length, strlen(reply->text));
        hli_reply_free(reply);
    }
}

Test(reply, reads_integers_and_decimal_texts_and_nothing_else_as_numbers)
{
    struct hli_reply *reply = reply_of("*8\r\n:-3\r\n$2\r\n42\r\n$2\r\n-7\r\n$0\r\n\r\n$2\r\n4x\r\n"
                                       "$-1\r\n+5\r\n$30\r\n111111111111111111111111111111\r\n");
    int64_t value = 99;
    check(hli_reply_integer_at(reply, 0, &value) && value == -3);
    check(hli_reply_integer_at(reply, 1, &value) && value == 42);
    check(hli_reply_integer_at(reply, 2, &value) && value == -7);
    for (size_t i = 3; i < 9; i++)
        check(!hli_reply_integer_at(reply, i, &(int64_t){0}));
    check(hli_reply_text_at(reply, 0) == NULL && hli_reply_text_at(reply, 6) == NULL);
    check(hli_reply_item(reply, 8) == NULL && hli_reply_item(NULL, 0) == NULL);
    hli_reply_free(reply);
    struct hli_reply *plain = reply_of(":5\r\n");
    check(hli_reply_item(plain, 0) == NULL && !hli_reply_integer_at(plain, 0, &value));
    hli_reply_free(plain);
    hli_reply_free(NULL);
}
