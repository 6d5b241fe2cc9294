/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A sign of life from the server. */
#include "base/check.h"
#include "base/error.h"
#include "lease/call.h"

struct client_ping {
    struct hli_call call;
};

static void ping_freed(struct hli_call *call)
{
    free(HLI_OF(call, struct client_ping, call));
}

static int ping_read(struct hli_call *call, const struct hli_reply *reply)
{
    (void)call;
    return reply->kind == HLI_REPLY_STATUS ? HL_OK : HL_ESERVER;
}

static struct client_ping *ping_new(hl_client *client, int64_t timeout_ms)
{
    const struct hli_bytes word = hli_bytes_of("PING");
    struct client_ping *ping = calloc(1, sizeof(*ping));

    if (!ping)
        return NULL;
    hli_call_init(&ping->call, client, "ping", timeout_ms);
    ping->call.is_repeatable = true;
    ping->call.read = ping_read;
    ping->call.freed = ping_freed;
    if (hli_op_command(&ping->call.op, &word, 1) < 0) {
        hli_call_unref(&ping->call);
        return NULL;
    }
    return ping;
}

int hl_client_ping(hl_client *client, int64_t timeout_ms, hl_error *err)
{
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (timeout_ms < -1)
        return hli_fail(err, HL_EINVAL, "timeout_ms is less than -1");
    struct client_ping *ping = ping_new(client, timeout_ms);
    if (!ping)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    rc = hli_call_block(&ping->call, err);
    hli_call_unref(&ping->call);
    return rc;
}
