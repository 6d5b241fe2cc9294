/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What tells a file from the one that takes its place: whether it must be read again. */
#ifndef HLI_REDIS_FILE_STAMP_H
#define HLI_REDIS_FILE_STAMP_H

#include <stdbool.h>
#include <sys/stat.h>

struct hli_file_stamp { /* all zero: there is no file */
    dev_t device;
    ino_t number;
    off_t size;
    struct timespec modified, changed;
};

/* Taken before the file is read, so that what changes meanwhile is seen at the next look. NULL is
 * no file. True when there is one. */
bool hli_file_stamp_take(const char *path, struct hli_file_stamp *ret_stamp);
/* Is the file of this name another one by now, or has it come or gone? */
bool hli_file_stamp_has_changed(const struct hli_file_stamp *stamp, const char *path);

#endif
