/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Orders on their way from the loop to the workers and back: a line with a limit, and an end. */
#ifndef SHOP_QUEUE_H
#define SHOP_QUEUE_H

#include "order.h"

#include <pthread.h>

struct job {
    struct job *next; /* in a queue */
    struct order order;
    enum answer answer;
    void *exchange; /* loop thread; workers carry it only */
};

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job *first, **last; /* mutex */
    long length, limit;        /* mutex */
    bool is_closed;            /* mutex */
};

void queue_init(struct queue *queue, long limit);
void queue_deinit(struct queue *queue);

/* False: the queue is full or closed, and the job is still the caller's. Threads: any. */
bool queue_put(struct queue *queue, struct job *job);

/* Waits for a job. NULL: the queue is closed and empty. Threads: any. */
struct job *queue_take(struct queue *queue);

/* The next job if there is one. Threads: any. */
struct job *queue_poll(struct queue *queue);

/* Takes no more jobs; those that are in it are still given out. Threads: any. */
void queue_close(struct queue *queue);
long queue_length(struct queue *queue);

#endif
