/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Queries: a call and its name, and who is told. */
#include "sync/query.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>

static struct hli_query *query_of(struct hli_call *call)
{
    return HLI_OF(call, struct hli_query, call);
}

static int query_read(struct hli_call *call, const struct hli_reply *reply)
{
    return query_of(call)->kind->read(query_of(call), reply);
}

static void query_freed(struct hli_call *call)
{
    hli_name_unref(query_of(call)->name);
    free(query_of(call));
}

struct hli_query *hli_query_new(const struct hli_query_kind *kind, struct hli_name *name,
                                size_t size)
{
    HLI_CHECK(size >= sizeof(struct hli_query));
    struct hli_query *query = calloc(1, size);

    if (!query)
        return NULL;
    hli_name_ref(name);
    query->name = name;
    query->kind = kind;
    hli_call_init(&query->call, name->client, kind->verb, -1);
    query->call.is_deed = kind->is_deed;
    query->call.is_repeatable = kind->is_repeatable;
    query->call.read = query_read;
    query->call.freed = query_freed;
    return query;
}

void hli_query_unref(struct hli_query *query)
{
    hli_call_unref(&query->call);
}

static void query_settle(struct hli_query *query, int code)
{
    if (query->kind->settle)
        query->kind->settle(query, code);
}

int hli_query_block(struct hli_query *query, int64_t *ret_count, hl_error *err)
{
    if (!query)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int code = hli_call_block(&query->call, err);
    query_settle(query, code);
    if (code == HL_OK && ret_count)
        *ret_count = query->count;
    hli_query_unref(query);
    return code;
}

static void query_ended(struct hli_call *call)
{
    query_settle(query_of(call), call->wait.code);
}

static void query_tell(struct hli_call *call)
{
    struct hli_query *query = query_of(call);
    const struct hli_told *told = &query->told;
    const hl_error *err = hli_call_error(call);
    int code = call->wait.code;

    if (query->kind->tell)
        query->kind->tell(query, code, err);
    else if (told->done)
        told->done(code, err, told->arg);
    else
        told->counted(code, code < 0 ? 0 : query->count, err, told->arg);
}

int hli_query_post(struct hli_query *query, const struct hli_told *told)
{
    if (!query)
        return HL_ENOMEM;
    query->told = *told;
    query->call.settle = query_ended;
    return hli_call_begin(&query->call, query_tell);
}
