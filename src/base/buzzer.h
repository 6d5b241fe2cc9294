/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * A buzzer: an eventfd by which any thread wakes one that polls it, and which can be closed while
 * others may be about to use it: none of them writes into the file that has its number next.
 */
#ifndef HLI_BASE_BUZZER_H
#define HLI_BASE_BUZZER_H

#include <stdatomic.h>

struct hli_buzzer {
    atomic_int fd;    /* -1 while closed */
    atomic_int users; /* who may be about to write to it */
};

void hli_buzzer_init(struct hli_buzzer *buzzer);

/* Errors: HL_ENOMEM, and errno says what ran out. Open already: fine. */
int hli_buzzer_open(struct hli_buzzer *buzzer);
void hli_buzzer_close(struct hli_buzzer *buzzer); /* closed already: fine */

/* Any thread. Does nothing while it is closed. */
void hli_buzzer_buzz(struct hli_buzzer *buzzer);
/* Its one listener has heard it, and polls it anew. */
void hli_buzzer_hush(struct hli_buzzer *buzzer);

/* In a forked child. */
void hli_buzzer_abandon(struct hli_buzzer *buzzer);

#endif
