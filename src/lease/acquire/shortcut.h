/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Shortcuts: nesting a call, releasing an inner level, and taking or leaving a retained tenure need
 * neither a request nor a wait. They are done here under one mutex and with one reading of the
 * clock, so that they cost what a mutex costs. Every other case takes the usual way, by acquire.c
 * and release.c, with the same outcome.
 */
#ifndef HLI_LEASE_ACQUIRE_SHORTCUT_H
#define HLI_LEASE_ACQUIRE_SHORTCUT_H

#include "lease/acquire/acquire.h"
#include "lease/hold/release.h"

/* For the calling thread, without options. True: the thread has the lock. */
bool hli_shortcut_acquire(struct hli_name *name, const struct hli_acquire_mode *mode);

/* True: it is done. */
bool hli_shortcut_release(struct hli_name *name, const struct hl_owner *owner,
                          const struct hli_release_mode *mode);

#endif
