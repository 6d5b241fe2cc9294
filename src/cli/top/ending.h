/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * How a signal ends it: the screen's thread sees it and leaves the terminal as it was. But that
 * thread may be inside a write to a terminal that takes nothing, as after control-S; so a few
 * seconds later the process ends wherever it is. One for the process.
 */
#ifndef CLI_TOP_ENDING_H
#define CLI_TOP_ENDING_H

/* From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT are seen, but one that the user had us ignore, as
 * nohup(1) does. Before the screen is opened, whose settings of the terminal are not to stay. */
void top_ending_begin(void);

/* The signal that ends it; 0: none. */
int top_ending_signal(void);

/* Ends the process as that signal would have ended it. */
void top_ending_die(void);

#endif
