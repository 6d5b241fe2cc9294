/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Prometheus' text format 0.0.4, written to a buffer that may be too short. Pure. */
#ifndef HLI_BASE_EXPOSITION_H
#define HLI_BASE_EXPOSITION_H

#include <hirelock/metrics.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hli_exposition {
    char *buffer; /* NULL if size is 0 */
    size_t size;
    size_t length; /* of the whole text: what is beyond the buffer is only counted */
    bool has_label;
};

/* The two lines before the samples of a metric; help has no newline and no backslash. */
void hli_exposition_head(struct hli_exposition *text, const char *name, const char *type,
                         const char *help);

/* One sample: begin, its labels, end. */
void hli_exposition_begin(struct hli_exposition *text, const char *name, const char *suffix);
void hli_exposition_label(struct hli_exposition *text, const char *name, const char *value);
void hli_exposition_labels(struct hli_exposition *text, const hl_label *labels); /* NULL: none */
void hli_exposition_end(struct hli_exposition *text, uint64_t value);
void hli_exposition_end_seconds(struct hli_exposition *text, uint64_t us);

/* The samples of one histogram, each with these labels. */
void hli_exposition_histogram(struct hli_exposition *text, const char *name, const hl_label *labels,
                              const hl_histogram *histogram);

/* Whole lines of the format, written before. */
void hli_exposition_add(struct hli_exposition *text, const char *lines);

/* "0.000512", "1073.741824": exact, with no needless zero, and the same in all locales. */
enum { HLI_EXPOSITION_SECONDS = 32 };
void hli_exposition_seconds(uint64_t us, char seconds[HLI_EXPOSITION_SECONDS]);

/* Are two values of a label written alike? */
bool hli_exposition_is_same(const char *value, const char *other);

/* May a label have this name? */
bool hli_exposition_is_label(const char *name);

#endif
