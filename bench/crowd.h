/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A crowd: processes that work in rounds, all at once. They die with the process that started them,
 * however it ends; one that fails, or does not come back from a round, ends the program.
 */
#ifndef HL_BENCH_CROWD_H
#define HL_BENCH_CROWD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { CROWD_MOST = 4 };

/* The work of one process in all rounds so far. Shared memory: read it between rounds. */
struct feats {
    uint64_t holds, passes, grants;
    double cpu_us;
};

/* All of it happens in the process itself, which has no other threads when it begins. */
struct crowd_job {
    void *(*begin)(void *arg, int process);
    void (*round)(void *state, const atomic_bool *is_over, struct feats *feats);
    void (*end)(void *state);
};

struct crowd;

/* Before any thread is started here. What arg leads to is copied, unless it is in shared memory. */
struct crowd *crowd_start(const struct crowd_job *job, void *arg, int processes);
void crowd_round(struct crowd *crowd, int64_t ms);
void crowd_stop(struct crowd *crowd);

int crowd_size(const struct crowd *crowd);
struct feats crowd_feats(const struct crowd *crowd, int process);

void *crowd_memory(size_t size); /* shared with all crowds that are started later; zeroed */
void crowd_memory_free(void *memory, size_t size);

#endif
