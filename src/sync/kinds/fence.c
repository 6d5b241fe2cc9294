/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The fence's calls: one request, one answer, blocking or async. */
#include "base/error.h"
#include "lease/calls/replicas.h"
#include "lease/hold/write.h"
#include "route/topology.h"
#include "sync/common/handle.h"

static int fence_set_read(struct hli_call *call, const struct hli_reply *reply)
{
    int64_t written = 0, token = 0;

    if (!hli_reply_integer_at(reply, 0, &written))
        return HL_ESERVER;
    if (written == 1)
        return HL_OK;
    hli_reply_integer_at(reply, 1, &token);
    return hli_fail(&call->async.err, HL_EFENCED, "%s: token %lld was there before",
                    call->kind->verb, (long long)token);
}

/* The largest token is the counter's value; Redis counts to 2^63 - 1. */
static int fence_token_read(struct hli_call *call, const struct hli_reply *reply)
{
    if (reply->kind == HLI_REPLY_NIL)
        return HL_OK;
    if (!hli_reply_integer(reply, &call->count))
        return hli_fail(&call->async.err, HL_ESERVER, "%s: the fence holds no token",
                        call->kind->verb);
    return HL_OK;
}

/* The slot of data is that of its fence. */
static unsigned fence_slot(const struct hli_call *call, struct hli_bytes key)
{
    return hli_topology_slot(call->client->topology, key.data, key.length);
}

/* The fence must outlive a failover as the lock does: else a smaller token passes it then. */
static void fence_confirm(struct hli_call *call)
{
    const hl_client *client = call->client;

    if (!(client->settings.flags & HL_CLIENT_KEEP_UNCONFIRMED))
        call->op.replicas = hli_replicas_of(client, 0);
    if (call->op.replicas > 0)
        call->lane = HLI_LANE_CONFIRMED;
}

static int fence_set_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    struct hli_write *write = NULL;
    int rc = hli_write_new(what, &write, &call->async.err);

    if (rc == 0 && write->token == 0)
        rc = hli_call_fail(call, HL_EINVAL, "a fenced write needs a token");
    if (rc == 0) {
        call->slot = fence_slot(call, write->key);
        fence_confirm(call);
        hli_args_begin_script(args, HLI_SCRIPT_FENCE_SET, 2);
        hli_write_keys(write, args);
        hli_write_words(write, args);
    }
    hli_write_unref(write);
    return rc;
}

static int fence_token_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    const struct hli_bytes *passed = what;
    struct hli_bytes key = {NULL, 0};
    char fence[HLI_CHANNEL_SIZE];
    int rc = hli_write_key(passed->data, passed->length, &key, &call->async.err);

    if (rc < 0)
        return rc;
    call->slot = fence_slot(call, key);
    hli_args_begin(args);
    hli_args_text(args, "GET");
    hli_args_bytes(args, (struct hli_bytes){fence, hli_name_derive(key, HLI_NAME_FENCE, fence)});
    return 0;
}

static const struct hli_call_kind fence_set_kind = {.verb = "fence set",
                                                    .changes_data = true,
                                                    .is_repeatable = true,
                                                    .prepare = fence_set_prepare,
                                                    .read = fence_set_read};
static const struct hli_call_kind fence_token_kind = {.verb = "fence token",
                                                      .is_repeatable = true,
                                                      .prepare = fence_token_prepare,
                                                      .read = fence_token_read};

int hl_fence_set(hl_client *client, const hl_fenced_write *write, hl_error *err)
{
    return hli_client_run(client, &fence_set_kind, write, HLI_BLOCKING(err));
}

int hl_fence_set_async(hl_client *client, const hl_fenced_write *write, hl_done_cb done, void *arg)
{
    return hli_client_run(client, &fence_set_kind, write, HLI_ASYNC_CALL(done, done, arg));
}

int hl_fence_token(hl_client *client, const void *key, size_t key_length, uint64_t *ret_token,
                   hl_error *err)
{
    int64_t token = 0;

    if (!ret_token)
        return hli_fail(err, HL_EINVAL, "ret_token is NULL");
    int rc = hli_client_run(client, &fence_token_kind, &(struct hli_bytes){key, key_length},
                            HLI_BLOCKING_COUNT(&token, err));
    if (rc == HL_OK)
        *ret_token = (uint64_t)token;
    return rc;
}

int hl_fence_token_async(hl_client *client, const void *key, size_t key_length, hl_token_cb done,
                         void *arg)
{
    return hli_client_run(client, &fence_token_kind, &(struct hli_bytes){key, key_length},
                          HLI_ASYNC_CALL(token, done, arg));
}
