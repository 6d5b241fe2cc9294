/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* What stands around the table: the server, its state and the counts above it, the keys below. */
#ifndef CLI_TOP_FRAME_H
#define CLI_TOP_FRAME_H

#include <hirelock/hirelock.h>
#include <stddef.h>

struct top_desk;

/* The rows that are left for the table, titles included. */
void top_frame_place(int *ret_row, int *ret_rows);

/* The address of the server, or of the first one and how many there are. */
void top_frame_address(hl_client *client, char *text, size_t size);

void top_frame_draw(const struct top_desk *desk);

#endif
