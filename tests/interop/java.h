/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A JVM that runs a class of tests/interop/java.
 */
#ifndef HL_INTEROP_JAVA_H
#define HL_INTEROP_JAVA_H

#include "worker.h"

/* Why no JVM can be started here; NULL when one can. */
const char *java_lacks(void);

struct worker *java_start(const char *class);

#endif
