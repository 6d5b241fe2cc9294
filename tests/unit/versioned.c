/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Structs across versions: an older caller's is shorter, a newer caller's longer. */

#include "base/versioned.h"

#include "support/test.h"

struct known {
    size_t size;
    int64_t first, second;
};

struct newer {
    struct known known;
    int64_t third;
};

static const struct known standard = {sizeof(struct known), 11, 22};

Test(versioned, copies_a_struct_of_the_same_version)
{
    struct known ret = standard, passed = {sizeof passed, 1, 2};
    check(hli_versioned_read(&ret, sizeof ret, &passed));
    check_int(ret.first, 1);
    check_int(ret.second, 2);
}

Test(versioned, keeps_the_defaults_of_what_an_older_caller_does_not_know)
{
    struct known ret = standard, passed = {offsetof(struct known, second), 1, 2};
    check(hli_versioned_read(&ret, sizeof ret, &passed));
    check_int(ret.first, 1);
    check_int(ret.second, 22);
    check_int(ret.size, sizeof ret);
}

Test(versioned, takes_a_newer_callers_struct_if_the_rest_is_zero)
{
    struct known ret = standard;
    struct newer passed = {{sizeof passed, 1, 2}, 0};
    check(hli_versioned_read(&ret, sizeof ret, &passed));
    check_int(ret.second, 2);
    check_int(ret.size, sizeof ret);
}

Test(versioned, refuses_a_newer_callers_wish_that_it_does_not_know)
{
    struct known ret = standard;
    struct newer passed = {{sizeof passed, 1, 2}, 3};
    check(!hli_versioned_read(&ret, sizeof ret, &passed));
    check_int(ret.first, 11);
}

Test(versioned, refuses_absurd_sizes)
{
    struct known ret = standard, passed = {0, 1, 2};
    check(!hli_versioned_read(&ret, sizeof ret, &passed));
    passed.size = sizeof(size_t) - 1;
    check(!hli_versioned_read(&ret, sizeof ret, &passed));
    passed.size = 1 << 20;
    check(!hli_versioned_read(&ret, sizeof ret, &passed));
    passed.size = SIZE_MAX;
    check(!hli_versioned_read(&ret, sizeof ret, &passed));
    check_int(ret.first, 11);
}
