/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * The rights that each primitive's page lists, for names that begin with `lock:`; and a user who
 * has them, or all of them but one.
 */
#ifndef HL_TEST_ACL_PAGES_H
#define HL_TEST_ACL_PAGES_H

#include "acl_scene.h"

#include "cli/rights.h"
#include "support/redis_program.h"

struct page {
    const char *name;
    void (*use)(struct scene *scene);
    bool is_lock;              /* it needs lock_rights as well */
    const char *const *rights; /* the last one is NULL */
};

static const struct page page_of_locks = {"lock", use_lock, true, no_rights};
static const struct page page_of_fair_locks = {"fair lock", use_fair, true, fair_rights};
static const struct page page_of_tags = {"tags", use_tags, true, holder_rights}; /* an option's */
static const struct page page_of_latches = {"latch", use_latch, false, latch_rights};

static const struct page *const pages[] = {
    &page_of_locks,
    &(const struct page){"multi-lock", use_multi, true, no_rights},
    &(const struct page){"spin lock", use_spin, true, no_rights},
    &page_of_fair_locks,
    &(const struct page){"fenced lock", use_fenced, true, fenced_rights},
    &(const struct page){"read-write lock", use_rw, true, rw_rights},
    &(const struct page){"redlock", use_redlock, false, redlock_rights},
    &(const struct page){"semaphore", use_semaphore, false, semaphore_rights},
    &(const struct page){"permits", use_permits, false, permit_rights},
    &page_of_latches};
enum { PAGES = sizeof pages / sizeof pages[0] };

/* Before Redis 7 no expiry takes GT, and PEXPIREAT is refused for its words before it is denied. */
static inline bool acl_is_asked(const char *right)
{
    return redis_program_is_7() || strcmp(right, "+pexpireat") != 0;
}

/* From a name with a brace of its own keys and channels are derived without another. */
static inline void acl_give_one(struct redis_server *node, const char *right, bool is_braced)
{
    const char *brace = strchr(right, '{');
    char text[96];

    if (is_braced && brace)
        snprintf(text, sizeof text, "%.*s%s", (int)(brace - right), right, brace + 1);
    else
        snprintf(text, sizeof text, "%s", right);
    redis_do(node, "ACL SETUSER locker %s", text);
}

/* The node's user `locker` has these rights but one, or all of them: NULL. The last list is NULL.
 * The node has neither scripts nor a log of denials then. */
static inline void acl_give(struct redis_server *node, const char *const *const *lists,
                            bool is_braced, const char *but)
{
    redis_do(node, "ACL SETUSER locker reset resetchannels on >password");
    for (; *lists; lists++)
        for (const char *const *right = *lists; *right; right++)
            if (!but || strcmp(*right, but) != 0)
                acl_give_one(node, *right, is_braced);
    redis_do(node, "SCRIPT FLUSH");
    redis_do(node, "ACL LOG RESET");
}

/* What the node denied, but for one command, or NULL. Borrowed until the next call. */
static inline const char *acl_denied_at(struct redis_server *node, const char *but)
{
    static char object[128];
    redisReply *log = redis_command(node, "ACL LOG");
    bool is_denied = false;

    check(log && log->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements && !is_denied; i++) {
        snprintf(object, sizeof object, "%s", log->element[i]->element[7]->str);
        is_denied = !but || strcmp(object, but) != 0;
    }
    freeReplyObject(log);
    return is_denied ? object : NULL;
}

#endif
