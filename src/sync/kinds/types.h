/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The types of locks other than the plain one (lock.h), for the constructor. Each is defined in the
 * file of its kind. */
#ifndef HLI_SYNC_KINDS_TYPES_H
#define HLI_SYNC_KINDS_TYPES_H

#include "sync/lock/lock.h"

extern const struct hli_lock_type hli_fair_type;
extern const struct hli_lock_type hli_fenced_type;
extern const struct hli_lock_type hli_spin_type;
extern const struct hli_lock_type hli_read_type, hli_write_type;

#endif
