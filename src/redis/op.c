/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Ops: commands formatted by hiredis. */
#include "redis/op.h"

#include <hirelock/error.h>

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_WORDS_ON_STACK = 16 };

struct hli_bytes hli_bytes_of(const char *text)
{
    return (struct hli_bytes){text, strlen(text)};
}

static int op_format(struct hli_op *op, const char **argv, size_t *lengths,
                     const struct hli_bytes *words, size_t count)
{
    char *bytes = NULL;

    for (size_t i = 0; i < count; i++) {
        argv[i] = words[i].data;
        lengths[i] = words[i].length;
    }
    long long length = redisFormatCommandArgv(&bytes, (int)count, argv, lengths);
    if (length < 0)
        return HL_ENOMEM;
    hli_op_deinit(op);
    op->bytes = bytes;
    op->length = (size_t)length;
    op->script = -1;
    return 0;
}

int hli_op_command(struct hli_op *op, const struct hli_bytes *words, size_t count)
{
    const char *argv[OP_WORDS_ON_STACK];
    size_t lengths[OP_WORDS_ON_STACK];

    if (count <= OP_WORDS_ON_STACK)
        return op_format(op, argv, lengths, words, count);

    const char **many = calloc(count, sizeof(*many) + sizeof(size_t));
    if (!many)
        return HL_ENOMEM;
    int rc = op_format(op, many, (size_t *)(void *)(many + count), words, count);
    free(many);
    return rc;
}

static int op_script_words(struct hli_op *op, struct hli_bytes *words, size_t count,
                           hli_script_id script)
{
    words[0] = hli_bytes_of("EVALSHA");
    words[1] = hli_bytes_of(hli_script_get(script)->sha1);
    int rc = hli_op_command(op, words, count);
    if (rc == 0)
        op->script = (int)script;
    return rc;
}

int hli_op_script(struct hli_op *op, hli_script_id script, const struct hli_script_words *said)
{
    struct hli_bytes on_stack[OP_WORDS_ON_STACK], *words = on_stack;
    size_t count = 3 + said->key_count + said->arg_count;
    char numkeys[24];

    if (count > OP_WORDS_ON_STACK && !(words = calloc(count, sizeof(*words))))
        return HL_ENOMEM;
    snprintf(numkeys, sizeof(numkeys), "%zu", said->key_count);
    words[2] = hli_bytes_of(numkeys);
    memcpy(words + 3, said->keys, said->key_count * sizeof(*words));
    if (said->arg_count > 0)
        memcpy(words + 3 + said->key_count, said->args, said->arg_count * sizeof(*words));
    int rc = op_script_words(op, words, count, script);
    if (words != on_stack)
        free(words);
    return rc;
}

void hli_op_deinit(struct hli_op *op)
{
    if (op->bytes)
        redisFreeCommand(op->bytes);
    op->bytes = NULL;
    op->length = 0;
}
