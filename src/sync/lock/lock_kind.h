/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The kind of plain, fenced and spin locks, and of a multi-lock's members. */
#ifndef HLI_SYNC_LOCK_LOCK_KIND_H
#define HLI_SYNC_LOCK_LOCK_KIND_H

#include "lease/state/kind.h"

extern const struct hli_kind hli_kind_lock;

/* The words of inspect; a fair lock's, too. */
void hli_lock_say_inspect(const struct hli_name *name, struct hli_args *args);

#endif
