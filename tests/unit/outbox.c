/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* The outbox, over a pair of sockets. */

#include "redis/outbox.h"
#include "support/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hli_outbox outbox;
static int peer;

static void outbox_begin(void)
{
    int pair[2];
    check_int(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    peer = pair[1];
    hli_outbox_init(&outbox);
    check_int(hli_outbox_open(&outbox, pair[0], NULL), 0);
}

static void outbox_end(void)
{
    hli_outbox_close(&outbox);
    hli_outbox_deinit(&outbox);
    close(peer);
}

static void outbox_write(const char *text)
{
    pthread_mutex_lock(&mutex);
    hli_outbox_put(&outbox, text, strlen(text));
    hli_outbox_write(&outbox, &mutex);
    pthread_mutex_unlock(&mutex);
}

Test(outbox, writes_what_was_put_in_order_and_in_one_piece, .init = outbox_begin,
     .fini = outbox_end)
{
    char got[32] = "";
    hli_outbox_put(&outbox, "first ", 6);
    outbox_write("second");
    check_int(recv(peer, got, sizeof(got) - 1, MSG_DONTWAIT), 12);
    check_str(got, "first second");
    check(!hli_outbox_needs_loop(&outbox));
}

Test(outbox, keeps_nothing_in_memory_of_what_it_wrote, .init = outbox_begin, .fini = outbox_end)
{
    static const char secret[] = "open sesame";
    outbox_write(secret);
    check(outbox.spare.data && outbox.waiting.data);
    check(!memmem(outbox.spare.data, outbox.spare.size, secret, strlen(secret)));
    check(!memmem(outbox.waiting.data, outbox.waiting.size, secret, strlen(secret)));
}

Test(outbox, keeps_nothing_in_memory_of_what_it_did_not_write, .init = outbox_begin,
     .fini = outbox_end)
{
    static const char secret[] = "open sesame";
    hli_outbox_put(&outbox, secret, strlen(secret));
    hli_outbox_close(&outbox);
    check(outbox.waiting.data != NULL);
    check(!memmem(outbox.waiting.data, outbox.waiting.size, secret, strlen(secret)));
    int pair[2];
    check_int(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(peer);
    peer = pair[1];
    check_int(hli_outbox_open(&outbox, pair[0], NULL), 0);
}

Test(outbox, leaves_the_rest_to_the_loop_when_the_socket_is_full, .init = outbox_begin,
     .fini = outbox_end)
{
    static char much[4 << 20];
    memset(much, 'x', sizeof(much) - 1);
    outbox_write(much);
    check(outbox.is_blocked && hli_outbox_needs_loop(&outbox));
}

Test(outbox, notes_when_a_full_socket_has_taken_more_and_keeps_no_large_memory,
     .init = outbox_begin, .fini = outbox_end)
{
    static char much[4 << 20], got[64 * 1024];
    memset(much, 'x', sizeof(much) - 1);
    outbox_write("little");
    check(outbox.progressed_at == 0);
    outbox_write(much);
    check(outbox.is_blocked);
    hli_ns before = outbox.progressed_at;
    outbox.is_blocked = false;
    outbox_write("");
    check(outbox.progressed_at == before); /* it took nothing */
    while (hli_outbox_needs_loop(&outbox)) {
        while (recv(peer, got, sizeof got, MSG_DONTWAIT) > 0)
            ;
        outbox.is_blocked = false;
        outbox_write("");
    }
    check(outbox.progressed_at > before);
    check(outbox.waiting.size + outbox.spare.size <= 128 * 1024);
    check(outbox.spare.data != NULL);
}
