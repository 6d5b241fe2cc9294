/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A connection cut after each byte of each request and reply. */

#include "connection_cut.h"

Test(connection_cut_everywhere, acquire_and_release)
{
    cut_sweep(cut_plain, 1);
}

Test(connection_cut_everywhere, a_nested_acquire_that_extends)
{
    cut_sweep(cut_nested, 1);
}

Test(connection_cut_everywhere, a_renewal)
{
    cut_sweep(cut_renewed, 1);
}

Test(connection_cut_everywhere, a_longer_lease)
{
    cut_sweep(cut_updated, 1);
}

Test(connection_cut_everywhere, a_wait_and_its_subscription)
{
    cut_sweep(cut_waiting, 1);
}

Test(connection_cut_everywhere, a_handshake)
{
    cut_sweep(cut_handshake, 1);
}

Test(connection_cut_everywhere, a_handshake_of_a_lazy_client)
{
    cut_sweep(cut_handshake_lazily, 1);
}

Test(connection_cut_everywhere, acquire_and_release_with_scripts_to_load)
{
    cut_sweep(cut_loading, 1);
}
