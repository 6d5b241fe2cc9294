/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The desk: what the user sees and does. It is in one mode at a time; a key means what the mode
 * says, and one function draws the whole picture. Of the thread of the screen.
 */
#ifndef CLI_TOP_DESK_H
#define CLI_TOP_DESK_H

#include "cli/top/errand.h"
#include "cli/top/observer.h"
#include "cli/top/order.h"
#include "cli/top/page.h"
#include "cli/top/table.h"

enum top_mode {
    TOP_TABLE,
    TOP_TYPING, /* a filter, above the table */
    TOP_HELP,
    TOP_LOCK, /* all of one lock */
    TOP_ASKED /* is a lock to be taken away? */
};

struct top_desk {
    struct top_store *store;
    struct top_observer *observer;
    struct top_errands *errands;
    enum top_mode mode;
    struct top_order order;
    struct top_table table;
    struct cli_name selected; /* owned bytes; none: the first row, whichever lock that is */
    struct top_page page;
    bool awaits_who;     /* the operator waits to be asked */
    bool is_inspecting;  /* an errand for the page is under way */
    json_object *target; /* whom TOP_ASKED is about; owned */
    char message[512];   /* for the user, until the next key */
    char address[300];
    bool is_paused, is_over;
};

void top_desk_init(struct top_desk *desk, struct top_store *store, struct top_observer *observer,
                   struct top_errands *errands);
void top_desk_deinit(struct top_desk *desk);

/* Takes what was seen since the last time into the picture. */
void top_desk_refresh(struct top_desk *desk);

void top_desk_draw(struct top_desk *desk);

/* Lets the observer glance at what is on the screen. */
void top_desk_glance(struct top_desk *desk);

void top_desk_key(struct top_desk *desk, int key);

/* Takes what an errand has brought. */
void top_desk_hear(struct top_desk *desk);

#endif
