/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Ops, and their words in RESP: "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n". */
#include "redis/op.h"

#include "base/check.h"
#include "base/random.h"

#include <hirelock/error.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OP_FENCE = 16,    /* digits of a fence's number */
    ARGS_NUMBER = 24, /* bytes of a number as text, with a NUL; enough for "$length\r\n" */
    ARGS_HEAD = 128,  /* bytes of the first words of a script's call */
    ARGS_SHA1 = 40,
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

/* A request has many numbers, and printf() for them took a third of the library's own CPU time. */
static char *args_write_decimal(char *to, uint64_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

static const char args_eol[] = {'\r', '\n'};

/* data NULL: the caller writes the bytes. */
void hli_args_bytes(struct hli_args *args, struct hli_bytes word)
{
    size_t needed = ARGS_NUMBER + word.length + sizeof(args_eol);

    if (!args->has_failed && args->size - args->used < needed)
        args_grow(args, needed);
    if (args->has_failed)
        return;
    HLI_CHECK(args->bytes);
    char *at = args->bytes + args->used;
    *at++ = '$';
    at = args_write_decimal(at, word.length);
    memcpy(at, args_eol, sizeof(args_eol));
    at += sizeof(args_eol);
    if (word.data && word.length > 0)
        memcpy(at, word.data, word.length);
    at += word.length;
    memcpy(at, args_eol, sizeof(args_eol));
    args->used = (size_t)(at - args->bytes) + sizeof(args_eol);
    args->count++;
}

char *hli_args_room(struct hli_args *args, size_t length)
{
    hli_args_bytes(args, (struct hli_bytes){NULL, length});
    return args->has_failed ? NULL : args->bytes + args->used - sizeof(args_eol) - length;
}

void hli_args_key(struct hli_args *args, struct hli_bytes key)
{
    HLI_CHECK(args->has_failed || args->count == args->key_count);
    args->key_count++;
    hli_args_bytes(args, key);
}

void hli_args_text(struct hli_args *args, const char *text)
{
    hli_args_bytes(args, (struct hli_bytes){text, strlen(text)});
}

void hli_args_number(struct hli_args *args, int64_t number)
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char text[ARGS_NUMBER], *at = text;

    if (number < 0)
        *at++ = '-';
    at = args_write_decimal(at, size);
    hli_args_bytes(args, (struct hli_bytes){text, (size_t)(at - text)});
}

/* "$12\r\n" or "*12\r\n", without a NUL. */
static char *args_write_count(char *to, char kind, size_t count)
{
    *to++ = kind;
    to = args_write_decimal(to, count);
    memcpy(to, args_eol, sizeof(args_eol));
    return to + sizeof(args_eol);
}

/* Writes the number of words, and those that a script's call begins with. */
static size_t args_write_head(const struct hli_args *args, char head[ARGS_HEAD])
{
    static const char verb[] = "$7\r\nEVALSHA\r\n$40\r\n";
    char keys[ARGS_NUMBER];
    size_t length = (size_t)(args_write_decimal(keys, args->key_count) - keys);

    if (args->script < 0)
        return (size_t)(args_write_count(head, '*', args->count) - head);
    char *at = args_write_count(head, '*', 3 + args->count);
    memcpy(at, verb, sizeof(verb) - 1);
    at += sizeof(verb) - 1;
    memcpy(at, hli_script_table[args->script].sha1, ARGS_SHA1);
    at += ARGS_SHA1;
    memcpy(at, args_eol, sizeof(args_eol));
    at = args_write_count(at + sizeof(args_eol), '$', length);
    memcpy(at, keys, length);
    memcpy(at + length, args_eol, sizeof(args_eol));
    return (size_t)(at - head) + length + sizeof(args_eol);
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

int hli_op_texts(struct hli_op *op, const char *const *words)
{
    struct hli_args args;

    hli_args_begin(&args);
    for (; *words; words++)
        hli_args_text(&args, *words);
    return hli_args_end(&args, op);
}

/* The first half of each number, by which the fences of this process are known. */
static uint64_t fence_mark(void)
{
    static _Atomic uint64_t mark;
    uint64_t drawn = atomic_load(&mark), mine;

    if (drawn != 0)
        return drawn;
    mine = hli_random_u64() | 1;
    return atomic_compare_exchange_strong(&mark, &drawn, mine) ? mine : drawn;
}

static void fence_write(char text[OP_FENCE + 1], uint64_t number)
{
    snprintf(text, OP_FENCE + 1, "%016" PRIx64 "%016" PRIx64, fence_mark(), number);
}

int hli_op_add_fence(struct hli_op *op)
{
    static atomic_uint_fast64_t numbers;
    uint64_t number = atomic_fetch_add(&numbers, 1) + 1;
    char text[OP_FENCE + 1], ping[64 + OP_FENCE];

    fence_write(text, number);
    size_t length =
        (size_t)snprintf(ping, sizeof(ping), "*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n", OP_FENCE, text);
    char *bytes = realloc(op->bytes, op->length + length);
    if (!bytes)
        return HL_ENOMEM;
    memcpy(bytes + op->length, ping, length);
    op->bytes = bytes;
    op->length += length;
    op->fence = number;
    return 0;
}

bool hli_op_is_fence(const struct hli_reply *reply)
{
    char text[OP_FENCE + 1];

    fence_write(text, 0);
    return reply->kind == HLI_REPLY_STRING && reply->length == OP_FENCE &&
           strncmp(reply->text, text, OP_FENCE / 2) == 0;
}

bool hli_op_is_fence_of(const struct hli_op *op, const struct hli_reply *reply)
{
    char text[OP_FENCE + 1];

    fence_write(text, op->fence);
    switch (reply->kind) {
    case HLI_REPLY_STRING:
        return strcmp(reply->text, text) == 0;
    case HLI_REPLY_STATUS:
        return strcmp(reply->text, "PONG") == 0;
    default:
        return reply->kind == HLI_REPLY_ERROR;
    }
}

/* By hand: of TAILQ_CONCAT clang-tidy counts the nesting. */
void hli_ops_append(struct hli_ops *ops, struct hli_ops *more)
{
    struct hli_op *op;

    while ((op = TAILQ_FIRST(more))) {
        TAILQ_REMOVE(more, op, link);
        TAILQ_INSERT_TAIL(ops, op, link);
    }
}

bool hli_op_is_wanted(const struct hli_op *op)
{
    return !op->is_wanted || op->is_wanted(op);
}

bool hli_op_is_confirmed(const struct hli_op *op, const struct hli_answer *answer)
{
    return hli_replicas_cover(hli_op_confirmed(op, answer), op->replicas);
}

unsigned hli_op_confirmed(const struct hli_op *op, const struct hli_answer *answer)
{
    unsigned count = answer->replicas < HLI_OP_REPLICAS ? answer->replicas : HLI_OP_REPLICAS;

    if (op->replicas == 0)
        return 0;
    return count | (op->majority > 0 && count >= op->majority ? HLI_OP_MAJORITY : 0);
}

void hli_op_set_majority(struct hli_op *op, unsigned majority)
{
    unsigned number = op->replicas & HLI_OP_REPLICAS;

    op->majority = majority;
    op->needs = number;
    if (op->replicas & HLI_OP_MAJORITY)
        op->needs = majority > 0 && majority < number ? number : majority;
}

void hli_op_deinit(struct hli_op *op)
{
    free(op->bytes);
    op->bytes = NULL;
    op->length = 0;
}

void hli_op_wipe(struct hli_op *op)
{
    if (op->bytes)
        explicit_bzero(op->bytes, op->length);
    hli_op_deinit(op);
}
