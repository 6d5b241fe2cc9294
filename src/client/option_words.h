/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Options by their words, from the query of a URL and from the environment. */
#ifndef HLI_CLIENT_OPTION_WORDS_H
#define HLI_CLIENT_OPTION_WORDS_H

#include "redis/url.h"

#include <hirelock/client.h>

/* The URL of the environment: HIRELOCK_URL, else REDIS_URL; NULL: neither is set. */
const char *hli_option_words_url(void);

/* Sets in `settings`, whose strings are its own, what it leaves at its default: first by the URL's
 * query, then, with HL_CLIENT_ENVIRONMENT, by the environment. A word without effect is checked,
 * too, but for a text. Errors: HL_EINVAL, which names the word and what is allowed; HL_ENOMEM. */
int hli_option_words_apply(const struct hli_url *url, hl_client_options *settings, hl_error *err);

#endif
