/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Grows as it is written to. */
#include "fake_reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatal.h"

void fake_reply_deinit(struct fake_reply *reply)
{
    free(reply->bytes);
    *reply = (struct fake_reply){.bytes = NULL};
}

void fake_reply_bytes(struct fake_reply *reply, const void *bytes, size_t length)
{
    if (length == 0)
        return;
    char *grown = realloc(reply->bytes, reply->length + length);
    must(grown);
    memcpy(grown + reply->length, bytes, length);
    reply->bytes = grown;
    reply->length += length;
}

void fake_reply_text(struct fake_reply *reply, const char *text)
{
    fake_reply_bytes(reply, text, strlen(text));
}

void fake_reply_format(struct fake_reply *reply, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    must(length >= 0 && (size_t)length < sizeof text);
    fake_reply_bytes(reply, text, (size_t)length);
}

void fake_reply_bulk(struct fake_reply *reply, const void *bytes, size_t length)
{
    fake_reply_format(reply, "$%zu\r\n", length);
    fake_reply_bytes(reply, bytes, length);
    fake_reply_text(reply, "\r\n");
}
