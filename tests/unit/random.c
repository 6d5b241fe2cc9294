/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Identities and jitter. */

#include "base/random.h"

#include "support/test.h"

#include <string.h>

Test(random, stays_within_its_limits_and_reaches_them)
{
    bool seen[4] = {false};
    for (int i = 0; i < 1000; i++) {
        int64_t value = hli_random_upto(3);
        check(value >= 0 && value <= 3);
        seen[value] = true;
    }
    check(seen[0] && seen[1] && seen[2] && seen[3]);
    check_int(hli_random_upto(0), 0);
    check_int(hli_random_upto(-5), 0);
    check(hli_random_upto(INT64_MAX) >= 0);
}

Test(random, writes_uuids_of_version_4_in_lower_case)
{
    for (int i = 0; i < 1000; i++) {
        char uuid[HLI_UUID_LENGTH + 1];
        hli_random_uuid(uuid);
        check_int(strlen(uuid), HLI_UUID_LENGTH);
        check_int(strspn(uuid, "0123456789abcdef-"), HLI_UUID_LENGTH);
        check(uuid[8] == '-' && uuid[13] == '-' && uuid[18] == '-' && uuid[23] == '-');
        check_int(uuid[14], '4');
        check(strchr("89ab", uuid[19]) != NULL);
    }
}

Test(random, does_not_repeat_itself)
{
    char before[HLI_UUID_LENGTH + 1] = "";
    for (int i = 0; i < 1000; i++) {
        char uuid[HLI_UUID_LENGTH + 1];
        hli_random_uuid(uuid);
        check(strcmp(uuid, before) != 0);
        memcpy(before, uuid, sizeof uuid);
    }
    check(hli_random_u64() != hli_random_u64());
}
