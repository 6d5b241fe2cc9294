/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A shared object that hides its symbols, as plug-ins do (-fvisibility=hidden). */
#include "cpp/plugin.hpp"

std::error_code plugin_code()
{
    return hirelock::errc::busy;
}
