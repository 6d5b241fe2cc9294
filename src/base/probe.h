/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Static probes (USDT) for bpftrace, perf and SystemTap: docs/probes.md lists them. A probe is one
 * `nop`, and a note in the library says where it is and where its arguments are (<sys/sdt.h>). So
 * arguments are what is at hand, never computed by a call; the first is a text. A build without
 * probes has nothing there.
 */
#ifndef HLI_BASE_PROBE_H
#define HLI_BASE_PROBE_H

#ifdef HL_PROBES
#include <sys/sdt.h>
#ifdef __clang__ /* the macros of sys/sdt.h have no arguments behind some "..." */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define HLI_PROBE1(probe, text) DTRACE_PROBE1(hirelock, probe, (const char *)(text))
#define HLI_PROBE2(probe, text, b) DTRACE_PROBE2(hirelock, probe, (const char *)(text), b)
#else
#define HLI_PROBE1(probe, text) ((void)(text))
#define HLI_PROBE2(probe, text, b) ((void)(text), (void)(b))
#endif

#endif
