/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The loader: one SCRIPT LOAD in flight for each script. */
#include "redis/loader.h"

#include "base/check.h"
#include "base/error.h"

/* Bounces in a row, more than an occasional SCRIPT FLUSH causes. Behind a proxy, for example,
 * SCRIPT LOAD and EVALSHA may reach different servers. */
enum { LOADER_BOUNCES = 8 };

static void loader_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_loader_script *script = HLI_OF(op, struct hli_loader_script, op);

    script->in_flight = false;
    if (answer->verdict != HLI_REFUSED && answer->verdict != HLI_FAILED)
        return;
    script->verdict = answer->verdict;
    hli_fail(&script->refused, answer->code, "SCRIPT LOAD: %s", answer->text);
}

void hli_loader_init(struct hli_loader *loader, struct hli_conn *conn)
{
    *loader = (struct hli_loader){.conn = conn};
    for (int i = 0; i < HLI_SCRIPT_COUNT; i++)
        loader->script[i].op.done = loader_done;
}

void hli_loader_deinit(struct hli_loader *loader)
{
    for (int i = 0; i < HLI_SCRIPT_COUNT; i++)
        hli_op_deinit(&loader->script[i].op);
}

void hli_loader_reset(struct hli_loader *loader)
{
    for (int i = 0; i < HLI_SCRIPT_COUNT; i++)
        loader->script[i].refused.code = 0;
}

static bool loader_send(struct hli_loader *loader, int id)
{
    const struct hli_script *source = hli_script_get((hli_script_id)id);
    struct hli_loader_script *script = &loader->script[id];
    const struct hli_bytes words[] = {
        hli_bytes_of("SCRIPT"), hli_bytes_of("LOAD"), {source->text, source->length}};

    if (!script->op.bytes && hli_op_command(&script->op, words, 3) < 0)
        return false;
    /* In one write with the sender's next request, or a SCRIPT FLUSH could come between them. */
    script->in_flight = hli_conn_send(loader->conn, &script->op, HLI_CONN_WITH_NEXT);
    return true;
}

void hli_loader_answered(struct hli_loader *loader, const struct hli_op *op,
                         struct hli_answer *answer)
{
    if (answer->verdict != HLI_BOUNCED || op->script < 0)
        return;
    struct hli_loader_script *script = &loader->script[op->script];
    if (script->refused.code < 0) {
        *answer = (struct hli_answer){
            .verdict = script->verdict, .code = script->refused.code, .text = script->refused.text};
        script->refused.code = 0;
    } else if (!script->in_flight && !loader_send(loader, op->script)) {
        *answer =
            (struct hli_answer){.verdict = HLI_REFUSED, .code = HL_ENOMEM, .text = "out of memory"};
    } else if (op->bounces >= LOADER_BOUNCES) {
        answer->verdict = HLI_REFUSED; /* so that the sender pauses */
    }
}
