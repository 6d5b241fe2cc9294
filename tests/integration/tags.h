/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The fixture of the laws of the holder's tag: the lock "stock", its tag, and the tag's holder. */
#ifndef HL_TEST_TAGS_H
#define HL_TEST_TAGS_H

#include <pthread.h>

#include "support/kit.h"

#define KEY "hirelock_holder:{stock}"
#define TAGS CLIENT(.flags = HL_CLIENT_HOLDER_INFO)

static inline hl_lock_info inspected(hl_lock *lock)
{
    hl_lock_info info = HL_LOCK_INFO_INIT;
    expect_ok(hl_lock_inspect(lock, &info, NULL));
    return info;
}

static inline bool has_tag(void *lock)
{
    return inspected(lock).pid != 0;
}

static inline void expect_in_tag(const hl_lock_info *info, const char *thread)
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    check_str(info->host, host);
    check_int(info->pid, getpid());
    check_str(info->thread, thread);
    check_msg(info->held_ms > 0 && info->held_ms < slow_ms(60000), "%d ms", (int)info->held_ms);
}

/* Soon this handle is told. */
static inline void expect_tag(hl_lock *lock, const char *thread)
{
    check_msg(wait_until(has_tag, lock, 10000), "no tag is shown");
    hl_lock_info info = inspected(lock);
    expect_in_tag(&info, thread);
}

static inline void expect_no_tag(const hl_lock_info *info)
{
    check_str(info->host, "");
    check_str(info->thread, "");
    check_int(info->pid, 0);
    check_int(info->held_ms, 0);
}

static inline void name_me(const char *name)
{
    check_int(pthread_setname_np(pthread_self(), name), 0);
}

#endif
