/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Where the shop keeps its data. hiredis takes no URL, and the shop shall use the same one as the
 * lock: redis://[user[:password]@]host[:port][/db] or unix:///path[?db=n].
 */
#ifndef STOCK_DEDUCTION_ADDRESS_H
#define STOCK_DEDUCTION_ADDRESS_H

#include <stdbool.h>

struct address {
    char path[108]; /* of a unix socket, else empty */
    char host[256];
    int port;
    char user[128], password[256];
    int db;
};

bool address_read(struct address *address, const char *url);

#endif
