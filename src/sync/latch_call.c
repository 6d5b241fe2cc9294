/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The latch: what is one request and one answer, blocking or async. */
#include "base/error.h"
#include "sync/latch.h"

static const struct hli_noted_verb latch_set_count = {.query = HLI_NOTED_DEED("set count"),
                                                      .script = HLI_SCRIPT_LATCH_SET_COUNT,
                                                      .tells = true,
                                                      .no = HL_EBUSY,
                                                      .no_text = "the latch is closed already"};
static const struct hli_noted_verb latch_count_down = {
    .query = HLI_NOTED_DEED("count down"), .script = HLI_SCRIPT_LATCH_COUNT_DOWN, .tells = true};
static const struct hli_noted_verb latch_delete = {.query = HLI_NOTED_DEED("delete"),
                                                   .script = HLI_SCRIPT_LATCH_DELETE,
                                                   .tells = true,
                                                   .no = HL_ENOTOWNER,
                                                   .no_text = "the latch is open"};
static const struct hli_noted_verb latch_count = {.query = HLI_NOTED_QUESTION("count"),
                                                  .script = HLI_SCRIPT_LATCH_COUNT};

const struct hli_noted_call hli_latch_counts_down = {.verb = &latch_count_down};
static const struct hli_noted_call latch_deletes = {.verb = &latch_delete};
static const struct hli_noted_call latch_counts = {.verb = &latch_count};

static int latch_check_count(int64_t count, hl_error *err)
{
    return count >= 1 ? 0 : hli_fail(err, HL_EINVAL, "the count is less than 1");
}

int hl_latch_set_count(hl_latch *latch, int64_t count, hl_error *err)
{
    int rc = latch_check_count(count, err);

    return rc < 0
               ? rc
               : hli_noted_block(hli_latch_handle(latch),
                                 &(struct hli_noted_call){&latch_set_count, &count, 1}, NULL, err);
}

int hl_latch_count_down(hl_latch *latch, hl_error *err)
{
    return hli_noted_block(hli_latch_handle(latch), &hli_latch_counts_down, NULL, err);
}

int hl_latch_count(hl_latch *latch, int64_t *ret_count, hl_error *err)
{
    if (!ret_count)
        return hli_fail(err, HL_EINVAL, "ret_count is NULL");
    return hli_noted_block(hli_latch_handle(latch), &latch_counts, ret_count, err);
}

int hl_latch_delete(hl_latch *latch, hl_error *err)
{
    return hli_noted_block(hli_latch_handle(latch), &latch_deletes, NULL, err);
}

int hl_latch_set_count_async(hl_latch *latch, int64_t count, hl_done_cb done, void *arg)
{
    int rc = latch_check_count(count, NULL);

    return rc < 0 ? rc
                  : hli_noted_post(hli_latch_handle(latch),
                                   &(struct hli_noted_call){&latch_set_count, &count, 1},
                                   &(struct hli_told){.done = done, .arg = arg});
}

int hl_latch_count_down_async(hl_latch *latch, hl_done_cb done, void *arg)
{
    return hli_noted_post(hli_latch_handle(latch), &hli_latch_counts_down,
                          &(struct hli_told){.done = done, .arg = arg});
}

int hl_latch_count_async(hl_latch *latch, hl_count_cb done, void *arg)
{
    return hli_noted_post(hli_latch_handle(latch), &latch_counts,
                          &(struct hli_told){.counted = done, .arg = arg});
}

int hl_latch_delete_async(hl_latch *latch, hl_done_cb done, void *arg)
{
    return hli_noted_post(hli_latch_handle(latch), &latch_deletes,
                          &(struct hli_told){.done = done, .arg = arg});
}
