/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Looks scripts up in the table that the build embeds. */

#include "redis/script.h"

#include "base/check.h"

const struct hli_script *hli_script_get(hli_script_id id)
{
    HLI_CHECK(id < HLI_SCRIPT_COUNT);
    return &hli_script_table[id];
}
