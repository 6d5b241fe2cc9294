/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A sign of life from the server. */
#include "base/error.h"
#include "lease/calls/call.h"

static int ping_read(struct hli_call *call, const struct hli_reply *reply)
{
    (void)call;
    return reply->kind == HLI_REPLY_STATUS ? HL_OK : HL_ESERVER;
}

static int ping_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    int64_t timeout_ms = *(const int64_t *)what;

    if (timeout_ms < -1)
        return hli_call_fail(call, HL_EINVAL, "timeout_ms is less than -1");
    hli_call_set_timeout(call, timeout_ms);
    hli_args_begin(args);
    hli_args_text(args, "PING");
    return 0;
}

static const struct hli_call_kind ping_kind = {.verb = "ping",
                                               .is_repeatable = true,
                                               .may_be_denied = true,
                                               .prepare = ping_prepare,
                                               .read = ping_read};

int hl_client_ping(hl_client *client, int64_t timeout_ms, hl_error *err)
{
    return hli_client_run(client, &ping_kind, &timeout_ms, HLI_BLOCKING(err));
}

int hl_client_ping_async(hl_client *client, int64_t timeout_ms, hl_done_cb done, void *arg)
{
    return hli_client_run(client, &ping_kind, &timeout_ms, HLI_ASYNC_CALL(done, done, arg));
}
