/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The wordings. */
#include "lease/calls/wording.h"

const struct hli_wording hli_wording_plain = {.publish = "PUBLISH", .numsub = "NUMSUB"};
const struct hli_wording hli_wording_cluster = {
    .is_for_cluster = true, .publish = "PUBLISH", .numsub = "NUMSUB"};
const struct hli_wording hli_wording_sharded = {
    .is_for_cluster = true, .publish = "SPUBLISH", .numsub = "SHARDNUMSUB"};
