/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Replicas: the options and the words of it. */
#include "lease/calls/replicas.h"

#include "base/error.h"

#include <stdio.h>

enum { REPLICAS_MAX = 1000 };

int hli_replicas_check(int min_replicas, hl_error *err)
{
    if (min_replicas >= HL_REPLICAS_NONE && min_replicas <= REPLICAS_MAX)
        return 0;
    return hli_fail(err, HL_EINVAL,
                    "min_replicas is neither from 0 to %d nor HL_REPLICAS_MAJORITY or _NONE",
                    REPLICAS_MAX);
}

unsigned hli_replicas_of(const hl_client *client, int min_replicas)
{
    int asked = min_replicas != 0 ? min_replicas : client->settings.min_replicas;

    if (asked == HL_REPLICAS_MAJORITY)
        return HLI_OP_MAJORITY;
    return asked > 0 ? (unsigned)asked : 0;
}

int hli_replicas_write(const hl_client *client, const struct hli_op *op,
                       const struct hli_answer *answer, char text[HLI_REPLICAS_TEXT])
{
    if (answer->code < 0)
        snprintf(text, HLI_REPLICAS_TEXT, "WAIT: %s", answer->text);
    else if (op->needs == 0)
        snprintf(text, HLI_REPLICAS_TEXT,
                 "the server does not tell (ROLE) how many replicas a majority is");
    else
        snprintf(text, HLI_REPLICAS_TEXT, "%u of %u replicas have it after %lld ms",
                 answer->replicas, op->needs, (long long)client->settings.replicas_timeout_ms);
    return answer->code < 0 ? answer->code : HL_EREPLICAS;
}
