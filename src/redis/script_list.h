/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The scripts: lua/name.lua for each row X(NAME, ...), which the build embeds. The rest of a row is
 * the shape of its reply, as fields of struct script_shape (script.c).
 */
#ifndef HLI_REDIS_SCRIPT_LIST_H
#define HLI_REDIS_SCRIPT_LIST_H

/* clang-format off */
#define HLI_SCRIPT_MAP(X)                                                                          \
    X(LOCK_ACQUIRE,            .gone = 1, .no = 6, .no_texts = 1, .yes = 2, .yes_texts = 1,        \
                               .plain = SCRIPT_PLAIN_NO)                                           \
    X(LOCK_RELEASE,            .no = 1, .yes = 3, .plain = SCRIPT_PLAIN_YES)                       \
    X(LOCK_RENEW,              .form = SCRIPT_PAIRS)                                               \
    X(LOCK_RECLAIM,            .form = SCRIPT_PAIRS)                                               \
    X(LOCK_KEEP,               .form = SCRIPT_PAIRS, .pairs = 1)                                   \
    X(LOCK_FORCE_RELEASE,      .no = 1, .yes = 1)                                                  \
    X(LOCK_INSPECT,            .no = 4, .yes = 4, .yes_texts = 3)                                  \
    X(LOCK_TAG,                .no = 1, .yes = 1)                                                  \
    X(FAIR_LOCK_ACQUIRE,       .gone = 1, .no = 6, .no_texts = 1, .yes = 2,                        \
                               .plain = SCRIPT_PLAIN_NO)                                           \
    X(FAIR_LOCK_FORCE_RELEASE, .no = 1, .yes = 1, .yes_texts = 1)                                  \
    X(FAIR_LOCK_RELEASE,       .no = 1, .no_texts = 1, .yes = 3, .yes_texts = 1,                   \
                               .plain = SCRIPT_PLAIN_YES)                                          \
    X(FENCE_RELEASE,           .no = 1, .yes = 4, .plain = SCRIPT_PLAIN_YES)                       \
    X(FENCE_SET,               .no = 2, .yes = 1, .plain = SCRIPT_PLAIN_YES)                       \
    X(MULTI_ACQUIRE,           .form = SCRIPT_ITEMS, .no = 6, .no_texts = 1, .yes = 2,             \
                               .plain = SCRIPT_PLAIN_NO)                                           \
    X(MULTI_RELEASE,           .form = SCRIPT_ITEMS, .no = 1, .yes = 3, .plain = SCRIPT_PLAIN_YES) \
    X(LATCH_COUNT,             .no = 6, .yes = 2, .plain = SCRIPT_PLAIN_NO)                        \
    X(LATCH_COUNT_DOWN,        .no = 1, .yes = 1, .plain = SCRIPT_PLAIN_YES)                       \
    X(LATCH_DELETE,            .no = 1, .yes = 1)                                                  \
    X(LATCH_SET_COUNT,         .no = 1, .yes = 1)                                                  \
    X(PERMIT_ACQUIRE,          .no = 6, .yes = 2, .plain = SCRIPT_PLAIN_NO)                        \
    X(PERMIT_ADD,              .no = 1, .yes = 1)                                                  \
    X(PERMIT_DELETE,           .no = 1, .yes = 1)                                                  \
    X(PERMIT_INSPECT,          .yes = 3)                                                           \
    X(PERMIT_LEASE_LEFT,       .gone = 1, .no = 1, .yes = 2)                                       \
    X(PERMIT_RELEASE,          .no = 2, .yes = 3, .plain = SCRIPT_PLAIN_YES)                       \
    X(PERMIT_RENEW,            .form = SCRIPT_PAIRS)                                               \
    X(PERMIT_RECLAIM,          .form = SCRIPT_PAIRS)                                               \
    X(PERMIT_SET,              .no = 1, .yes = 1)                                                  \
    X(PERMIT_UPDATE_LEASE,     .gone = 1, .no = 1, .yes = 1)                                       \
    X(REDLOCK_ACQUIRE,         .gone = 2, .no = 6, .yes = 2, .plain = SCRIPT_PLAIN_NO)             \
    X(REDLOCK_FORCE_RELEASE,   .no = 1, .yes = 1)                                                  \
    X(REDLOCK_INSPECT,         .no = 4, .yes = 4)                                                  \
    X(REDLOCK_RELEASE,         .no = 1, .yes = 1, .plain = SCRIPT_PLAIN_YES)                       \
    X(REDLOCK_RENEW,           .form = SCRIPT_PAIRS)                                               \
    X(RW_READ_ACQUIRE,         .gone = 1, .no = 6, .no_texts = 1, .yes = 2,                        \
                               .plain = SCRIPT_PLAIN_NO)                                           \
    X(RW_READ_RELEASE,         .no = 1, .yes = 3, .plain = SCRIPT_PLAIN_YES)                       \
    X(RW_READ_RENEW,           .form = SCRIPT_PAIRS)                                               \
    X(RW_READ_RECLAIM,         .form = SCRIPT_PAIRS)                                               \
    X(RW_WRITE_ACQUIRE,        .gone = 1, .no = 6, .no_texts = 1, .yes = 2,                        \
                               .plain = SCRIPT_PLAIN_NO)                                           \
    X(RW_WRITE_RELEASE,        .no = 1, .yes = 3, .plain = SCRIPT_PLAIN_YES)                       \
    X(RW_FORCE_RELEASE,        .no = 1, .yes = 1)                                                  \
    X(RW_INSPECT,              .no = 4, .yes = 4, .yes_texts = 3)                                  \
    X(SEMAPHORE_ACQUIRE,       .no = 6, .yes = 2, .yes_or = 7, .plain = SCRIPT_PLAIN_NO)           \
    X(SEMAPHORE_ADD,           .no = 1, .yes = 1, .plain = SCRIPT_PLAIN_YES)                       \
    X(SEMAPHORE_AVAILABLE,     .yes = 2)                                                           \
    X(SEMAPHORE_DRAIN,         .yes = 2)                                                           \
    X(SEMAPHORE_TRY_SET,       .no = 1, .yes = 1)                                                  \
    X(SEMAPHORE_UNDO,          .no = 1, .yes = 3)                                                  \
    X(TERM,                    .yes = 5, .yes_texts = 1)                                           \
    X(TOKEN_RAISE,             .yes = 1)                                                           \
    X(WAITER_TAG,              .yes = 1)
/* clang-format on */

#endif
