/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "support/fatal.h"

static void queue_copy(char to[QUEUE_FIELD], const struct resp_command *command, int index)
{
    size_t length = command->length[index];
    if (length >= QUEUE_FIELD)
        length = QUEUE_FIELD - 1;
    memcpy(to, command->argv[index], length);
    to[length] = '\0';
}

static unsigned queue_find(const struct queue *queue, const char *field)
{
    unsigned i = 0;
    while (i < queue->count && strcmp(queue->member[i].field, field) != 0)
        i++;
    return i;
}

static void queue_remove(struct queue *queue, unsigned index)
{
    if (index < queue->count)
        queue->member[index] = queue->member[--queue->count];
}

/* ZADD key NX score field */
static void queue_add(struct queue *queue, const struct resp_command *command)
{
    struct queue_member member = {.score = 0};
    char score[QUEUE_FIELD];
    queue_copy(score, command, 3);
    queue_copy(member.field, command, 4);
    member.score = strtod(score, NULL);
    must(queue->count < QUEUE_ROOM);
    if (queue_find(queue, member.field) == queue->count)
        queue->member[queue->count++] = member;
}

static bool queue_is_before(const struct queue_member *a, const struct queue_member *b)
{
    return a->score < b->score || (a->score == b->score && strcmp(a->field, b->field) < 0);
}

static bool queue_pop(struct queue *queue)
{
    unsigned head = 0;
    for (unsigned i = 1; i < queue->count; i++)
        if (queue_is_before(&queue->member[i], &queue->member[head]))
            head = i;
    if (queue->count == 0)
        return false;
    memcpy(queue->popped, queue->member[head].field, QUEUE_FIELD);
    queue_remove(queue, head);
    return true;
}

bool queue_step(struct queue *queue, const struct resp_command *command)
{
    char field[QUEUE_FIELD];
    if (resp_command_begins(command, "ZADD") && command->argc == 5) {
        queue_add(queue, command);
    } else if (resp_command_begins(command, "ZPOPMIN")) {
        return queue_pop(queue);
    } else if (resp_command_begins(command, "ZREM")) {
        for (int i = 2; i < (int)command->argc; i++) {
            queue_copy(field, command, i);
            queue_remove(queue, queue_find(queue, field));
        }
    } else if (resp_command_begins(command, "DEL") || resp_command_begins(command, "UNLINK")) {
        queue->count = 0;
    } else {
        return resp_command_begins(command, "PEXPIREAT");
    }
    return true;
}
