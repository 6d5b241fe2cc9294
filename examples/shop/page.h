/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The files of the page, which the build has put into the program (embed.cmake). */
#ifndef SHOP_PAGE_H
#define SHOP_PAGE_H

#include <stddef.h>

struct page_file {
    const char *path, *type;
    const unsigned char *bytes;
    size_t size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

#endif
