/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Bytes on their way out: appended at the end, consumed from the front. */
#ifndef HLI_BASE_BUFFER_H
#define HLI_BASE_BUFFER_H

#include <stddef.h>

struct hli_buffer {
    char *data;
    size_t start, end, size;
};

void hli_buffer_deinit(struct hli_buffer *buffer);

/* Makes sure that so much can be appended. Errors: HL_ENOMEM. */
int hli_buffer_reserve(struct hli_buffer *buffer, size_t length);

/* Errors: HL_ENOMEM, and nothing was appended. */
int hli_buffer_append(struct hli_buffer *buffer, const void *data, size_t length);
void hli_buffer_consume(struct hli_buffer *buffer, size_t length);
void hli_buffer_clear(struct hli_buffer *buffer);

static inline size_t hli_buffer_length(const struct hli_buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline const char *hli_buffer_front(const struct hli_buffer *buffer)
{
    return buffer->data + buffer->start;
}

#endif
