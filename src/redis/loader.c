/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The loader: one SCRIPT LOAD in flight for each script. */
#include "redis/loader.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <stdio.h>
#include <stdlib.h>

/* Bounces in a row, more than an occasional SCRIPT FLUSH causes. Behind a proxy, for example,
 * SCRIPT LOAD and EVALSHA may reach different servers. */
enum { LOADER_BOUNCES = 8 };

_Static_assert(HLI_SCRIPT_COUNT <= 64, "each script has a bit");

struct loader_load {
    struct hli_op op;
    struct hli_loader *loader;
    int script;
};

static uint64_t loader_bit(int script)
{
    return UINT64_C(1) << script;
}

static void loader_note(struct hli_loader *loader, const struct hli_answer *answer)
{
    loader->verdict = answer->verdict;
    loader->code = answer->code;
    snprintf(loader->text, sizeof(loader->text), "SCRIPT LOAD: %s", answer->text);
}

static void load_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct loader_load *load = HLI_PART_OF(op, struct loader_load, op);
    struct hli_loader *loader = load->loader;

    loader->in_flight &= ~loader_bit(load->script);
    if (answer->verdict == HLI_REFUSED || answer->verdict == HLI_FAILED) {
        loader->refused |= loader_bit(load->script);
        loader_note(loader, answer);
    }
    hli_op_deinit(op);
    free(load);
}

void hli_loader_init(struct hli_loader *loader, struct hli_conn *conn)
{
    *loader = (struct hli_loader){.conn = conn};
}

void hli_loader_reset(struct hli_loader *loader)
{
    loader->refused = 0;
}

static struct loader_load *load_new(struct hli_loader *loader, int script)
{
    const struct hli_script *source = hli_script_get((hli_script_id)script);
    struct loader_load *load = calloc(1, sizeof(*load));
    const struct hli_bytes words[] = {
        hli_bytes_of("SCRIPT"), hli_bytes_of("LOAD"), {source->text, source->length}};

    if (!load || hli_op_command(&load->op, words, 3) < 0) {
        free(load);
        return NULL;
    }
    HLI_PART_IS(&load->op, struct loader_load, op);
    load->op.done = load_done;
    load->loader = loader;
    load->script = script;
    return load;
}

/* False when memory is out. */
static bool loader_send(struct hli_loader *loader, int script)
{
    struct loader_load *load = load_new(loader, script);

    if (!load)
        return false;
    loader->in_flight |= loader_bit(script);
    /* In one write with the sender's next request, or a SCRIPT FLUSH could come between them. */
    if (hli_conn_send(loader->conn, &load->op, HLI_CONN_WITH_NEXT))
        return true;
    loader->in_flight &= ~loader_bit(script);
    hli_op_deinit(&load->op);
    free(load);
    return true;
}

void hli_loader_answered(struct hli_loader *loader, const struct hli_op *op,
                         struct hli_answer *answer)
{
    if (answer->verdict != HLI_BOUNCED || op->script < 0)
        return;
    uint64_t script = loader_bit(op->script);
    if (loader->refused & script) {
        *answer = (struct hli_answer){
            .verdict = loader->verdict, .code = loader->code, .text = loader->text};
        loader->refused &= ~script;
    } else if (!(loader->in_flight & script) && !loader_send(loader, op->script)) {
        *answer =
            (struct hli_answer){.verdict = HLI_REFUSED, .code = HL_ENOMEM, .text = "out of memory"};
    } else if (op->bounces >= LOADER_BOUNCES) {
        answer->verdict = HLI_REFUSED; /* so that the sender pauses */
    }
}
