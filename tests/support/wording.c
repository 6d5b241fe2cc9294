/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The clients of a run with HL_TEST_WORDING=cluster or sharded in the environment word their
 * requests as in a cluster, though the server is a single one: keys are declared, each name has
 * mailboxes of its own, and sharded messages go by SPUBLISH. The linker leads hl_client_open()
 * here.
 */
#include "wording.h"

#include "lease/calls/client.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

struct rewording {
    hl_client *client;
    const struct hli_wording *wording;
    struct hli_task task;
    struct hli_gate done;
};

/* On the loop thread, which alone looks at its pub/sub. */
static void reword(void *arg)
{
    struct rewording *to = arg;

    hli_link_pubsub(hli_client_link(to->client, 0, 0))->is_sharded =
        strcmp(to->wording->publish, "SPUBLISH") == 0;
    hli_client_set_wording(to->client, to->wording);
    hli_gate_open(&to->done);
}

void word_as(hl_client *client, const struct hli_wording *wording)
{
    struct rewording to = {.client = client, .wording = wording, .task = {.run = reword}};

    to.task.arg = &to;
    check(hli_loop_post(client->loop, &to.task));
    while (hli_gate_wait(&to.done, HLI_NEVER) != HLI_GATE_OPEN)
        continue;
}

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
int __real_hl_client_open(const char *url, const hl_client_options *options, hl_client **ret_client,
                          hl_error *err);
int __wrap_hl_client_open(const char *url, const hl_client_options *options, hl_client **ret_client,
                          hl_error *err);

int __wrap_hl_client_open(const char *url, const hl_client_options *options, hl_client **ret_client,
                          hl_error *err)
{
    const char *wording = getenv("HL_TEST_WORDING");
    int code = __real_hl_client_open(url, options, ret_client, err);

    if (code != HL_OK || !wording)
        return code;
    word_as(*ret_client,
            strcmp(wording, "sharded") == 0 ? &hli_wording_sharded : &hli_wording_cluster);
    return code;
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */
