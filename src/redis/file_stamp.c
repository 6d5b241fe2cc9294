/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Stamps by stat(). A file that came from a backup has the size and the time of the old one, and
 * one that was overwritten has its inode: so all of these are compared.
 */
#include "redis/file_stamp.h"

#include <string.h>

bool hli_file_stamp_take(const char *path, struct hli_file_stamp *ret_stamp)
{
    struct stat found;

    memset(ret_stamp, 0, sizeof(*ret_stamp)); /* with the bytes between the fields */
    if (!path || stat(path, &found) < 0)
        return false;
    ret_stamp->device = found.st_dev;
    ret_stamp->number = found.st_ino;
    ret_stamp->size = found.st_size;
    ret_stamp->modified = found.st_mtim;
    ret_stamp->changed = found.st_ctim;
    return true;
}

bool hli_file_stamp_has_changed(const struct hli_file_stamp *stamp, const char *path)
{
    struct hli_file_stamp now;

    hli_file_stamp_take(path, &now);
    return memcmp(&now, stamp, sizeof(now)) != 0;
}
