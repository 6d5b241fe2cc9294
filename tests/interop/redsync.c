/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Beside redsync. */
#include "redlock_laws.h"

const struct library library = {"redsync", "go", "set", "lock already taken", "lock already taken"};

/* clang-format off */
LawsOfSharing(one_master, peer_up_one)
LawsOfSharing(five_masters, peer_up_five)
LawsOfMasters(five_masters)
