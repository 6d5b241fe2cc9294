/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Cores: which threads may run where. */
#ifndef HL_BENCH_CORES_H
#define HL_BENCH_CORES_H

#include <stdbool.h>
#include <sys/types.h>

/* Two different cores of those that this process may use; false when there is one only, which is
 * then both. */
bool cores_pick(int *ret_server, int *ret_client);

void cores_pin_process(pid_t pid, int core); /* all its threads */
void cores_pin_thread(int core);             /* the calling one, and those that it starts */
void cores_free_process(pid_t pid);
void cores_free_thread(void);

#endif
