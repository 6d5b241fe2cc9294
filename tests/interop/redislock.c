/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Beside bsm/redislock, which knows one master. */
#include "redlock_laws.h"

const struct library library = {"redislock", "go", "evalsha", "redislock: not obtained",
                                "redislock: lock not held"};

/* clang-format off */
LawsOfSharing(one_master, peer_up_one)
