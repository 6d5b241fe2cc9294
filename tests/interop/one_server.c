/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A part of programs whose tests have one server each. */
#include "servers.h"

const enum servers servers_kind = ONE_SERVER;
