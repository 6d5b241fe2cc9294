/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* A list under a mutex. Its limit is what keeps a shop that is too slow from growing: a buyer is
 * told to come again while that costs nothing yet. */
#include "queue.h"

void queue_init(struct queue *queue, long limit)
{
    *queue = (struct queue){.limit = limit};
    queue->last = &queue->first;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
}

void queue_deinit(struct queue *queue)
{
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
}

bool queue_put(struct queue *queue, struct job *job)
{
    pthread_mutex_lock(&queue->mutex);
    bool is_put = !queue->is_closed && queue->length < queue->limit;
    if (is_put) {
        job->next = NULL;
        *queue->last = job;
        queue->last = &job->next;
        queue->length++;
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return is_put;
}

/* Under the mutex. */
static struct job *queue_shift(struct queue *queue)
{
    struct job *job = queue->first;

    if (!job)
        return NULL;
    queue->first = job->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->length--;
    return job;
}

struct job *queue_take(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->is_closed)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    struct job *job = queue_shift(queue);
    pthread_mutex_unlock(&queue->mutex);
    return job;
}

struct job *queue_poll(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    struct job *job = queue_shift(queue);
    pthread_mutex_unlock(&queue->mutex);
    return job;
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

long queue_length(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    long length = queue->length;
    pthread_mutex_unlock(&queue->mutex);
    return length;
}
