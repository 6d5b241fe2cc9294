/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The fenced lock: a lock whose acquires ask for tokens; and raising their counter. */
#include <hirelock/fence.h>

#include "base/error.h"
#include "lease/state/command.h"
#include "sync/kinds/types.h"
#include "sync/lock/lock_kind.h"

const struct hli_lock_type hli_fenced_type = {
    .kind = &hli_kind_lock,
    .is_fenced = true,
};

struct token_raise {
    struct hli_call call;
    uint64_t token;
};

static struct token_raise *raise_of(struct hli_call *call)
{
    return HLI_OF(call, struct token_raise, call);
}

/* A lock that is passed between local owners has tokens in advance. Those from before the raise are
 * discarded here, so the next owner asks for new ones. */
static void raise_settle(struct hli_call *call, int code)
{
    struct hli_name *name = call->name;

    if (code != HL_OK)
        return;
    hli_mutex_lock(&name->mutex);
    struct hli_tenure *tenure = name->current;
    if (hli_tenure_has_key(tenure) && tenure->token <= raise_of(call)->token)
        tenure->tokens = 0;
    hli_mutex_unlock(&name->mutex);
}

static int raise_prepare(struct hli_call *call, struct hli_args *args, const void *what)
{
    uint64_t token = *(const uint64_t *)what;

    if (token < 1 || token > HL_TOKEN_RAISE_MAX)
        return hli_call_fail(call, HL_EINVAL, "the token is not from 1 to 2^62");
    raise_of(call)->token = token;
    hli_args_begin_script(args, HLI_SCRIPT_TOKEN_RAISE, 1);
    hli_command_derived(args, call->name, HLI_NAME_TOKEN);
    hli_args_number(args, (int64_t)token);
    return 0;
}

static const struct hli_call_kind raise_kind = {.verb = "raise",
                                                .size = sizeof(struct token_raise),
                                                .changes_data = true,
                                                .is_repeatable = true,
                                                .prepare = raise_prepare,
                                                .settle = raise_settle};

static int lock_raise_token(hl_lock *lock, uint64_t token, const struct hli_completion *completion)
{
    if (lock && !lock->type->is_fenced)
        return hli_fail(completion->err, HL_EINVAL,
                        "this lock has no tokens: it is not a fenced one");
    return hli_handle_run(HLI_HANDLE(lock), &raise_kind, &token, completion);
}

int hl_lock_raise_token(hl_lock *lock, uint64_t token, hl_error *err)
{
    return lock_raise_token(lock, token, HLI_BLOCKING(err));
}

int hl_lock_raise_token_async(hl_lock *lock, uint64_t token, hl_done_cb done, void *arg)
{
    return lock_raise_token(lock, token, HLI_ASYNC_CALL(done, done, arg));
}
