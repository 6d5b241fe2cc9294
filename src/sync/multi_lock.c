/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The multi-lock: the blocking calls. */
#include "sync/multi_lock.h"

#include "base/error.h"
#include "lease/gather.h"
#include "lease/scatter.h"
#include "sync/request.h"

static void multi_items_deinit(const struct hli_gather_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hli_name_unref(items[i].name);
}

int hli_multi_gather_new(const hl_lock *lock, const hl_acquire_options *passed,
                         struct hli_gather **ret_gather, hl_error *err)
{
    const struct hli_multi *multi = hli_multi_of(lock);
    struct hli_gather_item items[HLI_GATHER_LIMIT];
    struct hli_lock_acquire said = {.name = NULL};
    int rc = 0;

    for (size_t i = 0; i < multi->count; i++) {
        rc = hli_lock_prepare(&multi->members[i], passed, &said, err);
        if (rc < 0) {
            multi_items_deinit(items, i);
            return rc;
        }
        items[i] = (struct hli_gather_item){said.name, said.way};
    }
    if (said.options.ret_token) {
        hli_fail(err, HL_EINVAL, "ret_token is for fenced locks");
        rc = HL_EINVAL;
    } else {
        rc = hli_gather_new(&(struct hli_gathering){items, multi->count, &said.options}, ret_gather,
                            err);
    }
    multi_items_deinit(items, multi->count);
    return rc;
}

int hli_multi_acquire(hl_lock *lock, const hl_acquire_options *passed, hl_error *err)
{
    struct hli_gather *gather;
    int rc = hli_multi_gather_new(lock, passed, &gather, err);

    if (rc < 0)
        return rc;
    hli_wait_attach(&gather->wait, gather->options.cancel);
    hli_gather_make_way(gather);
    hli_wait_will_block(&gather->wait);
    hli_gather_start(gather);
    rc = hli_gather_block(gather);
    hli_wait_detach(&gather->wait);
    hli_gather_unref(gather);
    return rc;
}

/* Its members' names for this owner; one that is not there yet is made, to be told that nothing is
 * held. */
static int multi_scatter_items(const struct hli_multi *multi, const hl_owner *owner,
                               struct hli_scatter_item *items, size_t *ret_count)
{
    for (size_t i = 0; i < multi->count; i++) {
        const hl_lock *member = &multi->members[i];
        int rc = hli_lock_name_for(member, owner, &items[i].name);
        if (rc < 0)
            return rc;
        items[i].way = hli_lock_release_way(member);
        *ret_count = i + 1;
    }
    return 0;
}

int hli_multi_scatter_new(const hl_lock *lock, const hl_owner *owner,
                          struct hli_scatter **ret_scatter, hl_error *err)
{
    struct hli_scatter_item items[HLI_GATHER_LIMIT] = {{.name = NULL}};
    size_t count = 0;
    int rc = multi_scatter_items(hli_multi_of(lock), owner, items, &count);

    if (rc < 0)
        hli_fail(err, rc, "%s", hl_err_text(rc));
    else
        rc = hli_scatter_new(items, count, err, ret_scatter);
    for (size_t i = 0; i < count; i++)
        hli_name_unref(items[i].name);
    return rc;
}

void hli_multi_write_codes(const struct hli_multi *multi, const struct hli_scatter *scatter,
                           int *ret_codes)
{
    for (size_t i = 0; ret_codes && i < multi->given; i++)
        ret_codes[i] = hli_scatter_code(scatter, multi->member_of[i]);
}

int hli_multi_release(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_error *err)
{
    struct hli_scatter *scatter;
    int rc = hli_multi_scatter_new(lock, owner, &scatter, err);

    if (rc < 0)
        return rc;
    if (!lock->is_posted)
        hli_wait_will_block(&scatter->wait);
    hli_scatter_start(scatter, owner);
    rc = hli_wait_block(&scatter->wait);
    hli_multi_write_codes(hli_multi_of(lock), scatter, ret_codes);
    hli_scatter_unref(scatter);
    return rc;
}

static int multi_release_each(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_error *err)
{
    int rc = hli_lock_enter(lock, err);

    if (rc < 0)
        return rc;
    rc = hli_request_check_owner(lock->name->client, owner, err);
    struct hl_owner *mine = owner ? owner : hli_owner_of_thread();
    if (rc == 0)
        rc = mine ? hli_multi_release(lock, mine, ret_codes, err)
                  : hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    hli_lock_leave(lock);
    return rc;
}

/* What the release itself does not reach is the code of the whole call. */
int hl_multi_lock_release_each(hl_lock *lock, hl_owner *owner, int *ret_codes, hl_error *err)
{
    enum { UNTOLD = 1 };
    const struct hli_multi *multi = lock ? hli_multi_of(lock) : NULL;

    if (!multi || !ret_codes)
        return hli_fail(err, HL_EINVAL, "%s",
                        ret_codes ? "the lock is no multi-lock" : "ret_codes is NULL");
    for (size_t i = 0; i < multi->given; i++)
        ret_codes[i] = UNTOLD;
    int rc = multi_release_each(lock, owner, ret_codes, err);
    for (size_t i = 0; i < multi->given; i++)
        if (ret_codes[i] == UNTOLD)
            ret_codes[i] = rc;
    return rc;
}
