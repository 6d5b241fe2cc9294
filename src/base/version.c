/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The version of the library. */
#include <hirelock/version.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *hl_version(void)
{
    return TEXT(HL_VERSION_MAJOR) "." TEXT(HL_VERSION_MINOR) "." TEXT(HL_VERSION_PATCH);
}
