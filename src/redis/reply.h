/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A reply of the server: a small tree, parsed by hiredis' reader into our own nodes, with bounds
 * that no proper answer to our commands reaches. The parser refuses junk and deep nesting. It skips
 * the content of a reply that is too large, and marks the reply: such an answer may repeat another
 * program's value, and such a message may come from any client, so the connection is still good.
 */
#ifndef HLI_REDIS_REPLY_H
#define HLI_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hli_reply_kind { /* with hiredis' numbers */
                      HLI_REPLY_STRING = 1,
                      HLI_REPLY_ARRAY,
                      HLI_REPLY_INTEGER,
                      HLI_REPLY_NIL,
                      HLI_REPLY_STATUS,
                      HLI_REPLY_ERROR,
                      HLI_REPLY_BEYOND =
                          -1, /* stands for a skipped value, which is beyond the bounds */
};

struct hli_reply {
    enum hli_reply_kind kind;
    bool is_beyond; /* set at the root if any value of the reply was skipped */
    int64_t integer;
    size_t length; /* bytes of a text, or items of an array */
    union {
        char text[1]; /* NUL-terminated */
        struct hli_reply *item[1];
    };
};

/* Borrowed; NULL when the reply is not an array, or is too short. */
const struct hli_reply *hli_reply_item(const struct hli_reply *reply, size_t index);

/* Reads an integer, or a text with a decimal integer; false for anything else and NULL. */
bool hli_reply_integer(const struct hli_reply *reply, int64_t *ret_value);

/* The same for the item at `index` of an array. */
bool hli_reply_integer_at(const struct hli_reply *reply, size_t index, int64_t *ret_value);

/* The bulk string at `index` of an array, borrowed; NULL if there is none. */
const struct hli_reply *hli_reply_text_at(const struct hli_reply *reply, size_t index);

/* A server's own name, which it keeps wherever it is reached: that of a node of a cluster, of a
 * sentinel, of one run of a server. Redis makes 40 digits. "": it tells none. */
struct hli_id {
    char text[41];
};

/* The id that this text is; NULL, and what no server would call itself, is none. */
struct hli_id hli_reply_id(const struct hli_reply *text);
/* Are both known, and the same? */
bool hli_id_is(const struct hli_id *id, const struct hli_id *other);

/* The text behind this name in an array of names and texts in turn, borrowed; NULL if there is
 * none. */
const struct hli_reply *hli_reply_field(const struct hli_reply *fields, const char *name);

/* True for a message of a channel that the connection subscribes to. */
bool hli_reply_is_message(const struct hli_reply *reply);

/* What a whole reply may have: bytes, items of each of its arrays, and levels (0: the usual four).
 */
struct hli_reply_bounds {
    size_t bytes, items;
    int levels;
};

/* The parser of one connection. */
struct hli_parser;

/* bounds: copied; NULL: those of the answers to our scripts. */
struct hli_parser *hli_parser_new(const struct hli_reply_bounds *bounds);
void hli_parser_free(struct hli_parser *parser);

/* Errors: HL_EPROTO, HL_ENOMEM. */
int hli_parser_feed(struct hli_parser *parser, const char *bytes, size_t length);

/* The next whole reply, owned by the caller, or NULL when more bytes are needed. Errors: HL_EPROTO,
 * HL_ENOMEM. */
int hli_parser_next(struct hli_parser *parser, struct hli_reply **ret_reply);

void hli_reply_free(struct hli_reply *reply);

#endif
