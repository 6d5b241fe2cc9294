/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The URL and the options of hl_client_open(), checked. */
#ifndef HLI_CLIENT_OPTIONS_H
#define HLI_CLIENT_OPTIONS_H

#include "lease/calls/client.h"

/* Checks everything, and fills in defaults. Both results own their strings; the login is in the URL
 * only. Errors: HL_EINVAL, HL_ENOTSUP, HL_ENOMEM. */
int hli_options_read(const char *text, const hl_client_options *passed,
                     hl_client_options *ret_settings, struct hli_url *ret_url, hl_error *err);

/* Frees results that no other object has taken over. */
void hli_options_deinit(hl_client_options *settings, struct hli_url *url);

#endif
