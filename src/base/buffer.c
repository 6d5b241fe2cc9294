/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The byte buffer. */
#include "base/buffer.h"

#include "base/check.h"

#include <hirelock/error.h>

#include <string.h>

void hli_buffer_deinit(struct hli_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct hli_buffer){0};
}

int hli_buffer_reserve(struct hli_buffer *buffer, size_t length)
{
    size_t used = hli_buffer_length(buffer);

    if (buffer->size - buffer->end >= length)
        return 0;
    if (buffer->size - used >= length && used <= buffer->size / 2) {
        memmove(buffer->data, buffer->data + buffer->start, used);
    } else {
        size_t size = (used + length) * 2;
        char *data = malloc(size);
        if (!data)
            return HL_ENOMEM;
        if (used > 0)
            memcpy(data, buffer->data + buffer->start, used);
        free(buffer->data);
        buffer->data = data;
        buffer->size = size;
    }
    buffer->start = 0;
    buffer->end = used;
    return 0;
}

int hli_buffer_append(struct hli_buffer *buffer, const void *data, size_t length)
{
    int rc = hli_buffer_reserve(buffer, length);

    if (rc < 0)
        return rc;
    memcpy(buffer->data + buffer->end, data, length);
    buffer->end += length;
    return 0;
}

void hli_buffer_consume(struct hli_buffer *buffer, size_t length)
{
    HLI_CHECK(length <= hli_buffer_length(buffer));
    buffer->start += length;
    if (buffer->start == buffer->end)
        hli_buffer_clear(buffer);
}

void hli_buffer_clear(struct hli_buffer *buffer)
{
    buffer->start = buffer->end = 0;
}
