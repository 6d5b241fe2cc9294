/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A recorder: the arguments of callbacks, in order, as a line of text that a test compares:
 * "JEOPARDY, SAFE, LOST gone, done HL_OK, info mine 1, log ...".
 */
#ifndef HL_TEST_RECORDER_H
#define HL_TEST_RECORDER_H

#include <hirelock/hirelock.h>
#include <pthread.h>
#include <stdbool.h>

enum { RECORDER_ENTRIES = 256, RECORDER_TEXT = 16384 };

struct recorder {
    pthread_mutex_t mutex;
    char text[RECORDER_TEXT];
    int count;
    struct record {
        pthread_t thread;
        hl_event_kind kind; /* of an event */
        char name[64];      /* of an event's lock */
        int64_t validity_ms;
        int code; /* of a completion */
        char said[256];
    } entry[RECORDER_ENTRIES];
};

#define RECORDER_INIT                                                                              \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

/* Callbacks; arg is the recorder. */
void record_event(const hl_event *event, void *arg);
void record_log(hl_log_level level, const char *text, void *arg);
void record_done(int code, const hl_error *err, void *arg);
void record_count(int code, int64_t count, const hl_error *err, void *arg);
void record_codes(int code, const int *codes, size_t count, const hl_error *err, void *arg);
void record_info(int code, const hl_lock_info *info, const hl_error *err, void *arg);

int recorder_count(struct recorder *recorder);
bool recorder_wait(struct recorder *recorder, int count); /* until there are `count` entries */
struct record recorder_entry(struct recorder *recorder, int index);

/* Checks that the recorded line is, at once or soon, this one. */
void expect_story(struct recorder *recorder, const char *story);
bool recorder_says(struct recorder *recorder, const char *part);
bool recorder_wait_says(struct recorder *recorder, const char *part);

#endif
