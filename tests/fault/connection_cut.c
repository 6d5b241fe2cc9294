/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A connection cut after some of the bytes; connection_cut_everywhere.c has them all. */

#include "connection_cut.h"

Test(connection_cut, acquire_and_release, .timeout = 60)
{
    cut_sweep(cut_plain, 23);
}

Test(connection_cut, a_nested_acquire_that_extends, .timeout = 60)
{
    cut_sweep(cut_nested, 61);
}

Test(connection_cut, a_renewal, .timeout = 60)
{
    cut_sweep(cut_renewed, 97);
}

Test(connection_cut, a_wait_and_its_subscription, .timeout = 60)
{
    cut_sweep(cut_waiting, 67);
}

Test(connection_cut, a_greeting, .timeout = 60)
{
    cut_sweep(cut_greeting, 101);
}

Test(connection_cut, a_greeting_of_a_lazy_client, .timeout = 60)
{
    cut_sweep(cut_greeting_lazily, 101);
}

Test(connection_cut, acquire_and_release_with_scripts_to_load, .timeout = 60)
{
    cut_sweep(cut_loading, 301);
}
