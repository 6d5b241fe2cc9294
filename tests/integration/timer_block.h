/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Holds a client's loop inside its round of timers until the semaphore is posted: what comes due
 * meanwhile runs before any task. */
#ifndef HL_TEST_TIMER_BLOCK_H
#define HL_TEST_TIMER_BLOCK_H

#include "lease/calls/client.h"

#include <semaphore.h>

struct timer_block {
    struct hli_timer timer;
    sem_t entered, may_go;
};

static inline void timer_block_run(void *arg)
{
    struct timer_block *block = arg;
    sem_post(&block->entered);
    while (sem_wait(&block->may_go) != 0)
        ;
}

static inline void timer_block_begin(struct timer_block *block, hl_client *client)
{
    *block = (struct timer_block){.timer = {.run = timer_block_run, .arg = block}};
    sem_init(&block->entered, 0, 0);
    sem_init(&block->may_go, 0, 0);
    hli_timer_set(client->loop, &block->timer, 0);
    while (sem_wait(&block->entered) != 0)
        ;
}

#endif
