/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Ops, and their words in RESP: "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n". */
#include "redis/op.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARGS_NUMBER = 24, /* bytes of a number as text, with a NUL; enough for "$length\r\n" */
    ARGS_HEAD = 128,  /* bytes of the first words of a script's call */
};

struct hli_bytes hli_bytes_of(const char *text)
{
    return (struct hli_bytes){text, strlen(text)};
}

void hli_args_begin_script(struct hli_args *args, hli_script_id script, size_t key_count)
{
    args->script = (int)script;
    args->key_count = key_count;
    args->has_failed = false;
    args->count = args->used = 0;
    args->size = sizeof(args->on_stack);
    args->bytes = args->on_stack;
}

void hli_args_begin(struct hli_args *args)
{
    hli_args_begin_script(args, 0, 0);
    args->script = -1;
}

static void args_grow(struct hli_args *args, size_t length)
{
    size_t size = 2 * (args->used + length);
    char *bytes = malloc(size);

    args->has_failed = !bytes;
    if (!bytes)
        return;
    memcpy(bytes, args->bytes, args->used);
    if (args->bytes != args->on_stack)
        free(args->bytes);
    args->bytes = bytes;
    args->size = size;
}

/* Adds a word; data NULL: the caller writes the bytes. Returns their place. */
static char *args_add(struct hli_args *args, const void *data, size_t length)
{
    static const char end[] = {'\r', '\n'};
    size_t needed = ARGS_NUMBER + length + sizeof(end);

    if (!args->has_failed && args->size - args->used < needed)
        args_grow(args, needed);
    if (args->has_failed)
        return NULL;
    HLI_CHECK(args->bytes);
    char *word = args->bytes + args->used;
    word += snprintf(word, ARGS_NUMBER, "$%zu\r\n", length);
    if (data && length > 0)
        memcpy(word, data, length);
    memcpy(word + length, end, sizeof(end));
    args->used = (size_t)(word - args->bytes) + length + sizeof(end);
    args->count++;
    return word;
}

char *hli_args_room(struct hli_args *args, size_t length)
{
    return args_add(args, NULL, length);
}

void hli_args_bytes(struct hli_args *args, struct hli_bytes word)
{
    args_add(args, word.data, word.length);
}

void hli_args_text(struct hli_args *args, const char *text)
{
    args_add(args, text, strlen(text));
}

void hli_args_number(struct hli_args *args, int64_t number)
{
    char text[ARGS_NUMBER];

    args_add(args, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, number));
}

/* Writes the number of words, and those that a script's call begins with. */
static size_t args_write_head(const struct hli_args *args, char head[ARGS_HEAD])
{
    char keys[ARGS_NUMBER];

    if (args->script < 0)
        return (size_t)snprintf(head, ARGS_HEAD, "*%zu\r\n", args->count);
    const char *sha1 = hli_script_table[args->script].sha1;
    int length = snprintf(keys, sizeof(keys), "%zu", args->key_count);
    return (size_t)snprintf(head, ARGS_HEAD, "*%zu\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$%d\r\n%s\r\n",
                            3 + args->count, sha1, length, keys);
}

int hli_args_end(struct hli_args *args, struct hli_op *op)
{
    char head[ARGS_HEAD];
    size_t begin = args_write_head(args, head), length = begin + args->used;
    char *bytes = args->has_failed ? NULL : malloc(length);

    if (bytes) {
        memcpy(bytes, head, begin);
        memcpy(bytes + begin, args->bytes, args->used);
        hli_op_deinit(op);
        op->bytes = bytes;
        op->length = length;
        op->script = args->script;
    }
    if (args->bytes != args->on_stack)
        free(args->bytes);
    return bytes ? 0 : HL_ENOMEM;
}

int hli_op_command(struct hli_op *op, const struct hli_bytes *words, size_t count)
{
    struct hli_args args;

    hli_args_begin(&args);
    for (size_t i = 0; i < count; i++)
        hli_args_bytes(&args, words[i]);
    return hli_args_end(&args, op);
}

bool hli_op_is_wanted(const struct hli_op *op)
{
    return !op->is_wanted || op->is_wanted(op);
}

void hli_op_deinit(struct hli_op *op)
{
    free(op->bytes);
    op->bytes = NULL;
    op->length = 0;
}
