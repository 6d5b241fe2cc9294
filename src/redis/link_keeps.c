/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What a link's server keeps over a restart: CONFIG GET, once for each connection that somebody
 * wants to know it of. */
#include "base/check.h"
#include "redis/link_state.h"

#include <string.h>

/* {appendonly, yes, appendfsync, always, ...} */
static bool keeps_all(const struct hli_reply *reply)
{
    const struct hli_reply *key, *value;
    bool has_file = false, is_synced = false;

    for (size_t i = 0; (key = hli_reply_text_at(reply, i)) != NULL &&
                       (value = hli_reply_text_at(reply, i + 1)) != NULL;
         i += 2) {
        bool is_file = strcmp(key->text, "appendonly") == 0;
        bool is_sync = strcmp(key->text, "appendfsync") == 0;
        has_file = has_file || (is_file && strcmp(value->text, "yes") == 0);
        is_synced = is_synced || (is_sync && strcmp(value->text, "always") == 0);
    }
    return has_file && is_synced;
}

/* A server that does not say so (ACL) may forget. */
static void keeps_answered(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_link *link = HLI_OF(op, struct hli_link, keeps_op);
    bool is_lost = answer->verdict == HLI_UNKNOWN || answer->verdict == HLI_UNSENT;
    bool is_all = answer->verdict == HLI_REPLIED && keeps_all(answer->reply);

    atomic_store(&link->keeps, is_lost  ? HLI_KEEPS_UNKNOWN
                               : is_all ? HLI_KEEPS_ALL
                                        : HLI_KEEPS_SOME);
}

static void keeps_ask(void *arg)
{
    static const char *const words[] = {"CONFIG", "GET", "append*", NULL};
    struct hli_link *link = arg;

    if (link->state != HLI_LINK_UP || hli_op_texts(&link->keeps_op, words) < 0 ||
        !hli_conn_send(&link->conn[HLI_LINK_COMMANDS], &link->keeps_op, HLI_CONN_IF_READY))
        atomic_store(&link->keeps, HLI_KEEPS_UNKNOWN);
}

void hli_link_init_keeps(struct hli_link *link)
{
    link->ask_keeps = (struct hli_task){.run = keeps_ask, .arg = link};
    link->keeps_op.done = keeps_answered;
    link->keeps_op.script = -1;
    atomic_init(&link->keeps, HLI_KEEPS_UNKNOWN);
}

enum hli_link_keeps hli_link_keeps(struct hli_link *link)
{
    int keeps = HLI_KEEPS_UNKNOWN;

    if (atomic_compare_exchange_strong(&link->keeps, &keeps, HLI_KEEPS_ASKED))
        hli_loop_post(link->loop, &link->ask_keeps);
    return (enum hli_link_keeps)keeps;
}
