/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Callbacks that record their arguments. */

#include "recorder.h"

#include "test.h"

#include <stdarg.h>

static void recorder_add(struct recorder *recorder, const struct record *record, const char *format,
                         ...)
{
    va_list args;
    pthread_mutex_lock(&recorder->mutex);
    check(recorder->count < RECORDER_ENTRIES);
    recorder->entry[recorder->count++] = *record;
    size_t used = strlen(recorder->text);
    used += (size_t)snprintf(recorder->text + used, RECORDER_TEXT - used, "%s", used ? ", " : "");
    va_start(args, format);
    vsnprintf(recorder->text + used, RECORDER_TEXT - used, format, args);
    va_end(args);
    pthread_mutex_unlock(&recorder->mutex);
}

void record_event(const hl_event *event, void *arg)
{
    static const char *const kinds[] = {"?",
                                        "JEOPARDY",
                                        "SAFE",
                                        "LOST",
                                        "DISCONNECTED",
                                        "CONNECTED",
                                        "RELEASE_FAILED",
                                        "MASTER_CHANGED",
                                        "MASTER_ISOLATED",
                                        "MASTER_CONFIRMED"};
    struct record record = {
        .thread = pthread_self(), .kind = event->kind, .validity_ms = event->validity_ms};
    bool is_loss = event->kind == HL_EVENT_LOST, is_change = event->kind == HL_EVENT_MASTER_CHANGED;
    check(event->size >= sizeof *event);
    if (event->name)
        snprintf(record.name, sizeof record.name, "%.*s", (int)event->name_length, event->name);
    snprintf(record.said, sizeof record.said, "%s", event->reason ? event->reason : "");
    if (is_change)
        recorder_add(arg, &record, "MASTER_CHANGED from %s to %s", event->from, event->to);
    else
        recorder_add(arg, &record, "%s%s%s", kinds[event->kind], is_loss ? " " : "",
                     is_loss ? record.said : "");
}

void record_log(hl_log_level level, const char *text, void *arg)
{
    struct record record = {.thread = pthread_self(), .code = (int)level};
    snprintf(record.said, sizeof record.said, "%s", text);
    recorder_add(arg, &record, "log %s", text);
}

void record_done(int code, const hl_error *err, void *arg)
{
    struct record record = {.thread = pthread_self(), .code = code};
    check((err != NULL) == (code < 0));
    check(!err || err->code == code);
    snprintf(record.said, sizeof record.said, "%s", err ? err->text : "");
    recorder_add(arg, &record, "done %s", hl_err_name(code));
}

void record_count(int code, int64_t count, const hl_error *err, void *arg)
{
    struct record record = {.thread = pthread_self(), .code = code};
    check((err != NULL) == (code < 0) && (code >= 0 || count == 0));
    if (code < 0)
        recorder_add(arg, &record, "count %s", hl_err_name(code));
    else
        recorder_add(arg, &record, "count %lld", (long long)count);
}

/* "codes HL_OK HL_ELOST" */
void record_codes(int code, const int *codes, size_t count, const hl_error *err, void *arg)
{
    struct record record = {.thread = pthread_self(), .code = code};
    char text[256] = "";
    check((err != NULL) == (code < 0));
    for (size_t i = 0, used = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", hl_err_name(codes[i]));
    recorder_add(arg, &record, "codes%s", text);
}

void record_info(int code, const hl_lock_info *info, const hl_error *err, void *arg)
{
    struct record record = {.thread = pthread_self(), .code = code};
    check((err != NULL) == (code < 0) && (info == NULL) == (code < 0));
    if (info)
        recorder_add(arg, &record, "info %s%s%u", info->locked ? "locked " : "",
                     info->mine ? "mine " : "", info->hold_count);
    else
        recorder_add(arg, &record, "info %s", hl_err_name(code));
}

int recorder_count(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->mutex);
    int count = recorder->count;
    pthread_mutex_unlock(&recorder->mutex);
    return count;
}

struct record recorder_entry(struct recorder *recorder, int index)
{
    pthread_mutex_lock(&recorder->mutex);
    check(index < recorder->count);
    struct record record = recorder->entry[index];
    pthread_mutex_unlock(&recorder->mutex);
    return record;
}

struct recorder_wait {
    struct recorder *recorder;
    int count;
    const char *text;
};

static bool has_count(void *arg)
{
    const struct recorder_wait *wait = arg;
    return recorder_count(wait->recorder) >= wait->count;
}

bool recorder_wait(struct recorder *recorder, int count)
{
    return wait_until(has_count, &(struct recorder_wait){recorder, count, NULL}, 10000);
}

bool recorder_says(struct recorder *recorder, const char *part)
{
    pthread_mutex_lock(&recorder->mutex);
    bool says = strstr(recorder->text, part) != NULL;
    pthread_mutex_unlock(&recorder->mutex);
    return says;
}

static bool says(void *arg)
{
    const struct recorder_wait *wait = arg;
    return recorder_says(wait->recorder, wait->text);
}

bool recorder_wait_says(struct recorder *recorder, const char *part)
{
    return wait_until(says, &(struct recorder_wait){recorder, 0, part}, 10000);
}

static bool is_story(void *arg)
{
    const struct recorder_wait *wait = arg;
    pthread_mutex_lock(&wait->recorder->mutex);
    bool is = strcmp(wait->recorder->text, wait->text) == 0;
    pthread_mutex_unlock(&wait->recorder->mutex);
    return is;
}

void expect_story(struct recorder *recorder, const char *story)
{
    wait_until(is_story, &(struct recorder_wait){recorder, 0, story}, 10000);
    pthread_mutex_lock(&recorder->mutex);
    check_str(recorder->text, story);
    pthread_mutex_unlock(&recorder->mutex);
}
