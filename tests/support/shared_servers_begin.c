/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* For the programs whose laws are run at servers of other kinds. */
#include "shared_servers.h"
#include "test.h"

BeforeAll()
{
    shared_servers_start(shared_servers_wanted());
}

AfterAll()
{
    shared_servers_stop();
}
