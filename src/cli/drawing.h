/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The graph of blocked.h for people: circles first, then trees of who waits behind whom, those with
 * the most waits first. What would fill screens is told as a number. */
#ifndef CLI_DRAWING_H
#define CLI_DRAWING_H

#include "cli/blocked.h"

/* Draws the waits that are shown. What it advises to run is for this server. */
void cli_draw(const struct cli_blocked *blocked, const struct cli_server *server);

#endif
