/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The fence's calls: one request, one answer, blocking or async. */
#include "base/check.h"
#include "base/error.h"
#include "lease/call.h"
#include "lease/write.h"

#include <stdio.h>

struct fence_call {
    struct hli_call call;
    int64_t token; /* the largest, as it was answered; Redis counts to 2^63 - 1 */
    hl_done_cb done;
    hl_token_cb told;
    void *arg;
};

static struct fence_call *fence_call_of(struct hli_call *call)
{
    return HLI_OF(call, struct fence_call, call);
}

static void fence_call_freed(struct hli_call *call)
{
    free(fence_call_of(call));
}

static int fenced_set_read(struct hli_call *call, const struct hli_reply *reply)
{
    int64_t written = 0, token = 0;

    if (!hli_reply_integer_at(reply, 0, &written))
        return HL_ESERVER;
    if (written == 1)
        return HL_OK;
    hli_reply_integer_at(reply, 1, &token);
    return hli_fail(&call->err, HL_EFENCED, "%s: token %lld was there before", call->verb,
                    (long long)token);
}

static int fenced_last_read(struct hli_call *call, const struct hli_reply *reply)
{
    if (reply->kind == HLI_REPLY_NIL)
        return HL_OK;
    if (!hli_reply_integer(reply, &fence_call_of(call)->token))
        return hli_fail(&call->err, HL_ESERVER, "%s: the fence holds no token", call->verb);
    return HL_OK;
}

static struct fence_call *fence_call_new(hl_client *client, const char *verb)
{
    struct fence_call *fence = calloc(1, sizeof(*fence));

    if (!fence)
        return NULL;
    hli_call_init(&fence->call, client, verb, -1);
    fence->call.is_repeatable = true;
    fence->call.freed = fence_call_freed;
    return fence;
}

/* Formatted, or freed. */
static struct fence_call *fence_call_if(struct fence_call *fence, int rc)
{
    if (rc == 0)
        return fence;
    hli_call_unref(&fence->call);
    return NULL;
}

static struct fence_call *fenced_set_new(hl_client *client, const struct hli_write *write)
{
    struct fence_call *fence = fence_call_new(client, "fenced set");
    struct hli_bytes keys[2], words[HLI_WRITE_WORDS];

    if (!fence)
        return NULL;
    fence->call.is_deed = true;
    fence->call.read = fenced_set_read;
    hli_write_keys(write, keys);
    hli_write_words(write, words);
    const struct hli_script_words said = {keys, 2, words, HLI_WRITE_WORDS};
    return fence_call_if(fence, hli_op_script(&fence->call.op, HLI_SCRIPT_FENCE_SET, &said));
}

static struct fence_call *fenced_last_new(hl_client *client, struct hli_bytes key)
{
    struct fence_call *fence = fence_call_new(client, "fenced last");
    char name[HLI_CHANNEL_SIZE];

    if (!fence)
        return NULL;
    fence->call.read = fenced_last_read;
    const struct hli_bytes words[] = {hli_bytes_of("GET"),
                                      {name, hli_name_derive(key, HLI_NAME_FENCE, name)}};
    return fence_call_if(fence, hli_op_command(&fence->call.op, words, 2));
}

static int fence_enter(hl_client *client, hl_error *err)
{
    int rc = hli_client_enter(client);

    return rc == 0 ? 0 : hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
}

/* A call that is ready to be begun; or NULL, with the reason in ret_code. */
static struct fence_call *fenced_set_prepare(hl_client *client, const hl_write *passed,
                                             int *ret_code, hl_error *err)
{
    struct fence_call *fence = NULL;
    struct hli_write *write = NULL;

    *ret_code = hli_write_new(passed, &write, err);
    if (!write)
        return NULL;
    if (!hli_write_has_token(write))
        *ret_code = hli_fail(err, HL_EINVAL, "a fenced write needs a token");
    else if (!(fence = fenced_set_new(client, write)))
        *ret_code = hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    hli_write_unref(write);
    return fence;
}

static struct fence_call *fenced_last_prepare(hl_client *client, struct hli_bytes said,
                                              int *ret_code, hl_error *err)
{
    struct fence_call *fence = NULL;
    struct hli_bytes key = {NULL, 0};

    *ret_code = hli_write_key(said.data, said.length, &key, err);
    if (key.data && !(fence = fenced_last_new(client, key)))
        *ret_code = hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    return fence;
}

/* Blocks until the end, and frees it. */
static int fence_call_run(struct fence_call *fence, uint64_t *ret_token, hl_error *err)
{
    int rc = hli_call_block(&fence->call, err);

    if (rc == HL_OK && ret_token)
        *ret_token = (uint64_t)fence->token;
    hli_call_unref(&fence->call);
    return rc;
}

int hl_fenced_set(hl_client *client, const hl_write *write, hl_error *err)
{
    int rc = fence_enter(client, err);

    if (rc < 0)
        return rc;
    struct fence_call *fence = fenced_set_prepare(client, write, &rc, err);
    if (fence)
        rc = fence_call_run(fence, NULL, err);
    hli_client_leave(client);
    return rc;
}

static int fenced_last(hl_client *client, struct hli_bytes key, uint64_t *ret_token, hl_error *err)
{
    int rc = 0;

    if (!ret_token)
        return hli_fail(err, HL_EINVAL, "ret_token is NULL");
    struct fence_call *fence = fenced_last_prepare(client, key, &rc, err);
    return fence ? fence_call_run(fence, ret_token, err) : rc;
}

int hl_fenced_last(hl_client *client, const void *key, size_t key_length, uint64_t *ret_token,
                   hl_error *err)
{
    int rc = fence_enter(client, err);

    if (rc < 0)
        return rc;
    rc = fenced_last(client, (struct hli_bytes){key, key_length}, ret_token, err);
    hli_client_leave(client);
    return rc;
}

static void fenced_set_tell(struct hli_call *call)
{
    struct fence_call *fence = fence_call_of(call);

    fence->done(call->wait.code, hli_call_error(call), fence->arg);
}

static void fenced_last_tell(struct hli_call *call)
{
    struct fence_call *fence = fence_call_of(call);

    fence->told(call->wait.code, (uint64_t)fence->token, hli_call_error(call), fence->arg);
}

int hl_fenced_set_async(hl_client *client, const hl_write *write, hl_done_cb done, void *arg)
{
    int rc = done ? hli_client_enter(client) : HL_EINVAL;

    if (rc < 0)
        return rc;
    struct fence_call *fence = fenced_set_prepare(client, write, &rc, NULL);
    if (fence) {
        fence->done = done;
        fence->arg = arg;
        rc = hli_call_begin(&fence->call, fenced_set_tell);
    }
    hli_client_leave(client);
    return rc;
}

int hl_fenced_last_async(hl_client *client, const void *key, size_t key_length, hl_token_cb done,
                         void *arg)
{
    int rc = done ? hli_client_enter(client) : HL_EINVAL;

    if (rc < 0)
        return rc;
    struct fence_call *fence =
        fenced_last_prepare(client, (struct hli_bytes){key, key_length}, &rc, NULL);
    if (fence) {
        fence->told = done;
        fence->arg = arg;
        rc = hli_call_begin(&fence->call, fenced_last_tell);
    }
    hli_client_leave(client);
    return rc;
}
