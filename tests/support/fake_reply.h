/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A fake server's answer to one command, and what the server does after it. */
#ifndef HL_TEST_FAKE_REPLY_H
#define HL_TEST_FAKE_REPLY_H

#include <stddef.h>
#include <stdint.h>

enum fake_then {
    FAKE_GO_ON, /* serve the next command */
    FAKE_CLOSE, /* FIN after the last byte */
    FAKE_RESET, /* RST */
    FAKE_STALL  /* the connection stays open and is never read or answered again */
};

struct fake_reply {
    char *bytes;
    size_t length;
    int64_t delay_ms;
    enum fake_then then;
};

void fake_reply_deinit(struct fake_reply *reply);
void fake_reply_bytes(struct fake_reply *reply, const void *bytes, size_t length);
void fake_reply_text(struct fake_reply *reply, const char *text);
void fake_reply_format(struct fake_reply *reply, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fake_reply_bulk(struct fake_reply *reply, const void *bytes, size_t length);

#endif
