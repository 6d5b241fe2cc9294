/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* What a client takes of the heap at rest: a fleet has a thousand of them, and a cluster many
 * nodes. The bytes are those that glibc has given out, of one arena for all threads. */

#include "support/command.h"

#include <malloc.h>
#include <stdio.h>

enum { CLIENTS = 8 };

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

static bool heap_is_counted(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return mallopt(M_ARENA_MAX, 1) == 1;
#endif
}

static void expect_below(const char *what, size_t before, int count, size_t limit)
{
    size_t now = heap_bytes(), each = (now > before ? now - before : 0) / (size_t)count;

    printf("%s: %zu bytes\n", what, each);
    check_msg(each > 0 && each < limit, "%s: %zu bytes", what, each);
}

/* One server, and both connections to it. What a first client takes for the process is not
 * counted. */
SingleLaw(weight, of_a_client_of_one_server_is_some_pages)
{
    if (!heap_is_counted())
        skip("a sanitizer has the heap");
    hl_client *clients[CLIENTS];

    close_client(open_client(NULL));
    size_t before = heap_bytes();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = open_client(NULL);
        expect_ok(hl_client_ping(clients[i], -1, ERR));
    }
    expect_below("a client", before, CLIENTS, 80 * 1024);
}

/* That of hl_client_command(): a link with one connection. */
SingleLaw(weight, of_a_further_connection_is_less_than_that)
{
    if (!heap_is_counted())
        skip("a sanitizer has the heap");
    hl_client *clients[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        clients[i] = open_client(NULL);
    size_t before = heap_bytes();
    for (int i = 0; i < CLIENTS; i++)
        reply_of(clients[i], COMMAND(WORDS("PING")));
    expect_below("a connection for commands", before, CLIENTS, 32 * 1024);
}

/* Their texts are as long as the rest of the connection. */
SingleLaw(weight, of_a_loaded_script_is_nothing)
{
    if (!heap_is_counted())
        skip("a sanitizer has the heap");
    hl_client *client = open_client(NULL);
    hl_lock *lock = new_lock(client, "stock");
    size_t first = 0;

    for (int i = 0; i < 20; i++) {
        redis_do(server, "SCRIPT FLUSH");
        expect_ok(hl_lock_acquire(lock, ERR));
        expect_ok(hl_lock_release(lock, ERR));
        first = i == 1 ? heap_bytes() : first;
    }
    check_msg(heap_bytes() < first + 8 * 1024, "from %zu to %zu bytes", first, heap_bytes());
}
