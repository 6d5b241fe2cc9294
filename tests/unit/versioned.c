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

static void expect_refused(struct known *ret, const void *passed)
{
    hl_error err = HL_ERROR_INIT;

    check_int(hli_versioned_read(ret, sizeof *ret, passed, "the options", &err), HL_EINVAL);
    check_str(err.text,
              "the options: size is not set, or a field is set that this version does not know");
}

Test(versioned, reads_nothing_as_the_defaults)
{
    struct known ret = standard;
    check_int(hli_versioned_read(&ret, sizeof ret, NULL, "it", NULL), 0);
    check_int(ret.first, 11);
}

Test(versioned, copies_a_struct_of_the_same_version)
{
    struct known ret = standard, passed = {sizeof passed, 1, 2};
    check_int(hli_versioned_read(&ret, sizeof ret, &passed, "it", NULL), 0);
    check_int(ret.first, 1);
    check_int(ret.second, 2);
}

Test(versioned, keeps_the_defaults_of_fields_that_an_older_caller_lacks)
{
    struct known ret = standard, passed = {offsetof(struct known, second), 1, 2};
    check_int(hli_versioned_read(&ret, sizeof ret, &passed, "it", NULL), 0);
    check_int(ret.first, 1);
    check_int(ret.second, 22);
    check_int(ret.size, sizeof ret);
}

Test(versioned, takes_a_newer_callers_struct_if_the_rest_is_zero)
{
    struct known ret = standard;
    struct newer passed = {{sizeof passed, 1, 2}, 0};
    check_int(hli_versioned_read(&ret, sizeof ret, &passed, "it", NULL), 0);
    check_int(ret.second, 2);
    check_int(ret.size, sizeof ret);
}

Test(versioned, refuses_a_newer_callers_wish_that_it_does_not_know)
{
    struct known ret = standard;
    struct newer passed = {{sizeof passed, 1, 2}, 3};
    expect_refused(&ret, &passed);
    check_int(ret.first, 11);
}

Test(versioned, refuses_absurd_sizes)
{
    struct known ret = standard, passed = {0, 1, 2};
    expect_refused(&ret, &passed);
    passed.size = sizeof(size_t) - 1;
    expect_refused(&ret, &passed);
    passed.size = 1 << 20;
    expect_refused(&ret, &passed);
    passed.size = SIZE_MAX;
    expect_refused(&ret, &passed);
    check_int(ret.first, 11);
}

Test(versioned, writes_as_much_as_the_callers_size_says)
{
    const struct known result = {sizeof result, 1, 2};
    struct known to = {offsetof(struct known, second), 11, 22};
    struct newer newer = {{sizeof newer, 11, 22}, 33};

    hli_versioned_write(&to, sizeof result, &result);
    check_int(to.size, offsetof(struct known, second));
    check_int(to.first, 1);
    check_int(to.second, 22);
    hli_versioned_write(&newer, sizeof result, &result);
    check_int(newer.known.size, sizeof newer);
    check_int(newer.known.second, 2);
    check_int(newer.third, 33);
}
