/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock: distributed locks on Redis, shared with Redisson. This header includes all the others.
 */
#ifndef HIRELOCK_HIRELOCK_H
#define HIRELOCK_HIRELOCK_H

#include <hirelock/client.h>
#include <hirelock/command.h>
#include <hirelock/error.h>
#include <hirelock/fence.h>
#include <hirelock/latch.h>
#include <hirelock/lock.h>
#include <hirelock/metrics.h>
#include <hirelock/multi_lock.h>
#include <hirelock/permits.h>
#include <hirelock/redlock.h>
#include <hirelock/semaphore.h>
#include <hirelock/version.h>

#endif
