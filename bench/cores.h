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

/* The server on one core, the calling thread and those that it starts on another; false when there
 * is one core only, and nothing was done. And back. */
bool cores_part(pid_t server);
void cores_free(pid_t server);

#endif
