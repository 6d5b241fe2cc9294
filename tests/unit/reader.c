/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Whose the role of a connection's reader is, over a pair of sockets; and how a leader polls. */

#include "redis/lead.h"
#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hli_reader reader;
static int end, peer;

static void reader_begin(void)
{
    int pair[2];
    check_int(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    end = pair[0];
    peer = pair[1];
    hli_reader_init(&reader, true);
    check_int(hli_reader_open(&reader, end, NULL), 0);
}

static void reader_end(void)
{
    hli_reader_close(&reader);
    hli_reader_deinit(&reader);
    close(end);
    close(peer);
}

/* Would the loop wake? */
static bool wakes_loop(void)
{
    struct pollfd polled = {.fd = hli_reader_watched(&reader), .events = POLLIN};
    return poll(&polled, 1, 0) == 1;
}

static void peer_says(const char *text)
{
    check_int(send(peer, text, strlen(text), 0), (int)strlen(text));
}

static void promise_and_send(unsigned in_flight)
{
    hli_reader_lead_begin(&reader);
    hli_reader_expect(&reader, in_flight);
}

Test(reader, wakes_the_loop_unless_a_caller_leads, .init = reader_begin, .fini = reader_end)
{
    hli_reader_expect(&reader, 0); /* of one who does not block */
    peer_says("+OK\r\n");
    check(wakes_loop());
    check(hli_reader_try_take(&reader));
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED);
    hli_reader_leave(&reader, HLI_READER_NOBODY);

    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
    peer_says("+OK\r\n");
    check(!wakes_loop());
    check(!hli_reader_try_take(&reader));
    check(hli_reader_resume(&reader));
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED);
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED_NOTHING);
}

Test(reader, is_armed_for_a_sender_without_a_promise, .init = reader_begin, .fini = reader_end)
{
    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
    check(hli_reader_resume(&reader));
    hli_reader_leave(&reader, HLI_READER_NOBODY);
    peer_says("+OK\r\n");
    check(!wakes_loop());
    hli_reader_expect(&reader, 0);
    check(wakes_loop());
}

Test(reader, leads_once_for_each_promise, .init = reader_begin, .fini = reader_end)
{
    hli_reader_lead_begin(&reader);
    check(!hli_reader_lead_end(&reader)); /* nothing was sent */
    hli_reader_expect(&reader, 0);
    check(!hli_reader_lead_end(&reader));
    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
    check(!hli_reader_lead_end(&reader));
}

Test(reader, is_not_led_in_a_crowd, .init = reader_begin, .fini = reader_end)
{
    promise_and_send(1000);
    check(!hli_reader_lead_end(&reader));
    check(hli_reader_try_take(&reader));
}

Test(reader, tells_its_leader_of_company, .init = reader_begin, .fini = reader_end)
{
    promise_and_send(0);
    check(!reader.has_company);
    hli_reader_expect(&reader, 1); /* the same thread's */
    check(!reader.has_company);
    reader.leader = &peer; /* another's */
    hli_reader_expect(&reader, 1);
    check(reader.has_company);
}

static void take(void)
{
    pthread_mutex_lock(&mutex);
    hli_reader_take(&reader, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* No other thread leads until the sleeper knows, for the bell may still be the sleeper's. */
Test(reader, is_taken_from_a_leader_that_sleeps, .init = reader_begin, .fini = reader_end)
{
    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
    struct pollfd polled = {.fd = reader.wakefd.fd, .events = POLLIN};
    check_int(poll(&polled, 1, 0), 0);
    take();
    check_int(poll(&polled, 1, 0), 1);
    hli_reader_leave(&reader, HLI_READER_NOBODY);
    promise_and_send(0);
    check(!hli_reader_lead_end(&reader));
    check(!hli_reader_resume(&reader));
    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
}

Test(reader, keeps_the_bell_of_a_sleeping_caller_over_a_close, .init = reader_begin)
{
    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
    int bell = reader.wakefd.fd;
    take();
    hli_reader_close(&reader);
    check_int(reader.wakefd.fd, bell);
    check(!hli_reader_resume(&reader));
    check_int(reader.wakefd.fd, -1);
    hli_reader_deinit(&reader);
    close(end);
    close(peer);
}

static void *take_in_a_thread(void *arg)
{
    (void)arg;
    take();
    return NULL;
}

Test(reader, is_waited_for_by_the_loop_while_a_leader_reads, .init = reader_begin,
     .fini = reader_end)
{
    pthread_t loop;
    promise_and_send(0);
    check(hli_reader_lead_end(&reader));
    check(hli_reader_resume(&reader));
    check_int(pthread_create(&loop, NULL, take_in_a_thread, NULL), 0);
    struct deadline deadline = deadline_of_wait(10000);
    while (!atomic_load(&reader.is_recalled) && !deadline_is_over(deadline))
        deadline_nap();
    pthread_mutex_lock(&mutex);
    check(reader.is_recalled && reader.role == HLI_READER_BUSY);
    hli_reader_leave(&reader, HLI_READER_NOBODY);
    pthread_mutex_unlock(&mutex);
    pthread_join(loop, NULL);
    check_int(reader.role, HLI_READER_LOOP);
}

Test(reader, sees_a_hang_up_while_it_is_disarmed_and_once, .init = reader_begin, .fini = reader_end)
{
    promise_and_send(0);
    check(!wakes_loop());
    shutdown(peer, SHUT_RDWR);
    check(wakes_loop());
    check(!hli_reader_try_take(&reader)); /* the leader will find it */
    check(!wakes_loop());
    check(hli_reader_lead_end(&reader) && hli_reader_resume(&reader));
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED_FAILURE);
    hli_reader_leave(&reader, HLI_READER_LOOP);
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED_FAILURE);
    check(reader.has_failed && reader.failure == 0);
}

Test(reader, gives_back_what_a_leader_left, .init = reader_begin, .fini = reader_end)
{
    struct hli_reply *first = NULL, *again = NULL, *second = NULL, *third = NULL;
    peer_says(":1\r\n:2\r\n:");
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED);
    check_int(hli_reader_next(&reader, &first), 0);
    hli_reader_put_back(&reader, first);
    check_int(hli_reader_next(&reader, &again), 0);
    check(again == first && again->integer == 1);
    check_int(hli_reader_next(&reader, &second), 0);
    check(second && second->integer == 2);
    check_int(hli_reader_next(&reader, &third), 0);
    check(!third);
    hli_reply_free(again);
    hli_reply_free(second);
    peer_says("junk\r\n");
    check_int(hli_reader_receive(&reader, false), HLI_RECEIVED);
    check(hli_reader_next(&reader, &third) < 0);
    check(hli_reader_next(&reader, &third) < 0); /* and so it stays */
}

Test(lead, polls_until_that_was_in_vain_and_ever_more_rarely)
{
    struct hli_lead_polling polling = {.ns = 1000};
    int polls = 0, chances = 0;
    for (int i = 0; i < 1000; i++) {
        check(hli_lead_polls(&polling));
        hli_lead_has_polled(&polling, true);
    }
    for (; chances < 100000; chances++)
        if (hli_lead_polls(&polling)) {
            hli_lead_has_polled(&polling, false);
            polls++;
        }
    check_msg(polls >= 3 && polls < 200, "%d polls in vain of %d chances", polls, chances);
    for (int successes = 0; successes < 10; chances++) /* slowly back */
        if (hli_lead_polls(&polling)) {
            hli_lead_has_polled(&polling, true);
            successes++;
        }
    check_msg(chances < 110000, "%d chances", chances);
    check(hli_lead_polls(&polling) && hli_lead_polls(&polling));
}

Test(lead, does_not_poll_unless_told_to)
{
    struct hli_lead_polling polling = {.ns = 0};
    check(!hli_lead_polls(&polling));
}
