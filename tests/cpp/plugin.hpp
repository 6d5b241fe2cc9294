/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#ifndef HL_TEST_CPP_PLUGIN_HPP
#define HL_TEST_CPP_PLUGIN_HPP

#include <hirelock/error.hpp>

/* HL_EBUSY, by the plug-in's own copy of the header. */
HL_API std::error_code plugin_code();

#endif
