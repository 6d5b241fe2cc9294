/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Shortcuts: a nested call, its release, and what lingers, taken up and left again, need neither a
 * request nor a wait. They are done here under one mutex and with one look at the clock, so that
 * they cost what a mutex costs. Whatever is not quite so simple goes the long way, by acquire.c and
 * release.c, with the same outcome.
 */
#ifndef HLI_LEASE_SHORTCUT_H
#define HLI_LEASE_SHORTCUT_H

#include "lease/acquire.h"
#include "lease/release.h"

/* For the calling thread, without options. True: it has it. */
bool hli_shortcut_acquire(struct hli_name *name, const struct hli_acquire_way *way);

/* True: it is done. */
bool hli_shortcut_release(struct hli_name *name, const struct hl_owner *owner,
                          const struct hli_release_way *way);

#endif
