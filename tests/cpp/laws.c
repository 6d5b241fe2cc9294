/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cpp/laws.h"

#include "support/kit.h"

bool law_register(const char *const names[3], void (*body)(void), const char *file, int line)
{
    enum { LAWS_MAX = 100 };
    static struct hl_test laws[LAWS_MAX];
    static int count;

    if (count == LAWS_MAX)
        abort();
    struct hl_test *law = &laws[count++];
    law->suite = names[0];
    law->name = names[1];
    law->place = (struct hl_test_place){file, line, names[2]};
    law->body = body;
    law->options.init = server_up;
    law->options.fini = server_down;
    hl_test_register(law);
    return true;
}

const char *law_url(void)
{
    return redis_server_url(server);
}

struct redis_server *law_server(void)
{
    return server;
}

int64_t law_slow_ms(int64_t ms)
{
    return slow_ms(ms);
}
