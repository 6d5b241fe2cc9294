/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Storms: processes that want the same few locks while something breaks, and the history in which
 * each writes until when it believed that it held one. */
#ifndef HL_TEST_STORM_KIT_H
#define HL_TEST_STORM_KIT_H

#include "process_kit.h"

#include "support/history.h"

static inline void history_path(char path[128], int number)
{
    snprintf(path, 128, "%s/history.%d", redis_server_dir(server), number);
}

/* What is_held says is believed as of the moment before it was asked: the process may be stopped
 * right after. */
static inline bool storm_believes(struct history_record *record, const hl_lock *lock)
{
    int64_t asked_at = now_ns();
    if (!hl_lock_is_held(lock, NULL))
        return false;
    history_until(record, asked_at);
    return true;
}

/* What the owner does with a lock of this number that it has acquired: looks so often if it still
 * holds it, and releases it. */
static inline void storm_hold(struct history *history, uint64_t owner, hl_lock *lock,
                              uint32_t number, unsigned looks)
{
    struct history_record *record = history_enter(history, number, owner);
    history_until(record, 1); /* nothing is believed yet */
    while (looks-- > 0 && storm_believes(record, lock))
        deadline_nap();
    history_leave(record);
    int code = hl_lock_release(lock, NULL);
    check_msg(code == HL_OK || code == HL_ELOST || code == HL_EINDOUBT, "%s", hl_err_name(code));
}

#endif
