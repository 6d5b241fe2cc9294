/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * hirelock in C++17, and with coroutines in C++20: distributed locks on Redis. This header includes
 * all the others of the binding. They are headers only: a program links the library of C.
 *
 * Each call is one call of C, whose declaration says what it promises and which codes it returns.
 * docs/cpp.md explains the binding.
 */
#ifndef HIRELOCK_HIRELOCK_HPP
#define HIRELOCK_HIRELOCK_HPP

#include <hirelock/async.hpp>
#include <hirelock/client.hpp>
#include <hirelock/client_options.hpp>
#include <hirelock/command.hpp>
#include <hirelock/error.hpp>
#include <hirelock/handle.hpp>
#include <hirelock/hirelock.h>
#include <hirelock/hold.hpp>
#include <hirelock/latch.hpp>
#include <hirelock/lock.hpp>
#include <hirelock/metrics.hpp>
#include <hirelock/multi_lock.hpp>
#include <hirelock/permits.hpp>
#include <hirelock/redlock.hpp>
#include <hirelock/semaphore.hpp>

#endif
