/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* hirelock: distributed locks on Redis, shared with Redisson. This header includes all the others.
 */
#ifndef HIRELOCK_HIRELOCK_H
#define HIRELOCK_HIRELOCK_H

#include <hirelock/client.h>
#include <hirelock/error.h>
#include <hirelock/fair_lock.h>
#include <hirelock/fence.h>
#include <hirelock/fenced_lock.h>
#include <hirelock/latch.h>
#include <hirelock/lock.h>
#include <hirelock/multi_lock.h>
#include <hirelock/permit_semaphore.h>
#include <hirelock/rw_lock.h>
#include <hirelock/semaphore.h>
#include <hirelock/spin_lock.h>
#include <hirelock/version.h>

#endif
