/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* From what the caller of hl_client_open() said to what the parts need. */
#ifndef HLI_CLIENT_OPTIONS_H
#define HLI_CLIENT_OPTIONS_H

#include "lease/client.h"

/* Checks everything, and gives defaults. Both results own their strings. Errors: HL_EINVAL,
 * HL_ENOTSUP, HL_ENOMEM. */
int hli_options_read(const char *url, const hl_client_options *passed,
                     struct hli_settings *ret_settings, struct hli_link_settings *ret_link,
                     hl_error *err);

/* Of results that nobody has consumed. */
void hli_options_deinit(struct hli_settings *settings, struct hli_link_settings *link);

#endif
