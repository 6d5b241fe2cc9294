/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * Processes that move amounts between accounts, each under the locks of both, which they name in
 * either order: none waits for ever, nothing is lost, and one that dies holds up nobody for longer
 * than its lease.
 */

#include "multi_kit.h"
#include "support/actor.h"
#include "support/process.h"

#include <sys/mman.h>

enum { ACCOUNTS = 5, PROCESSES = 3, TELLERS = 3, TRANSFERS = 50, START = 1000 };
enum { READY, GO };

struct ledger { /* shared by all processes; each account is guarded by its lock alone */
    volatile long balance[ACCOUNTS];
};

static struct ledger *ledger_new(void)
{
    struct ledger *ledger =
        mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(ledger != MAP_FAILED);
    for (int i = 0; i < ACCOUNTS; i++)
        ledger->balance[i] = START;
    return ledger;
}

struct office { /* a process */
    struct ledger *ledger;
    const char *url;
    int number;
    hl_client *client;
    hl_lock *account[ACCOUNTS];
};

struct teller { /* a thread of it */
    struct office *office;
    int number;
};

static void transfer(const struct office *office, int from, int to)
{
    volatile long *balance = office->ledger->balance;
    hl_lock *members[] = {office->account[from], office->account[to]}, *both = NULL;
    hl_error err = HL_ERROR_INIT;
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    int rc = hl_lock_acquire_for(both, slow_ms(60000), &err);
    check_msg(rc == 0, "%s", err.text);
    long left = balance[from], right = balance[to];
    balance[from] = left - 1;
    balance[to] = right + 1;
    expect_ok(hl_lock_release(both, NULL));
    hl_lock_free(both);
}

static void transfer_often(void *arg)
{
    const struct teller *teller = arg;
    int begin = teller->office->number * TELLERS + teller->number;
    for (int i = 0; i < TRANSFERS; i++) {
        int from = (begin + i) % ACCOUNTS;
        transfer(teller->office, from, (from + 1 + (begin + i) % (ACCOUNTS - 1)) % ACCOUNTS);
    }
}

static void office_open(struct office *office)
{
    office->client = NULL;
    expect_ok(hl_client_open(office->url, NULL, &office->client, NULL));
    for (int i = 0; i < ACCOUNTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "account:%d", i);
        expect_ok(hl_lock_new(office->client, name, &office->account[i], NULL));
    }
}

static void office_close(struct office *office)
{
    for (int i = 0; i < ACCOUNTS; i++)
        hl_lock_free(office->account[i]);
    expect_ok(hl_client_close(office->client));
}

static void office_work(struct process *self, void *arg)
{
    struct office *office = arg;
    struct teller tellers[TELLERS];
    struct actor *actor[TELLERS];
    office_open(office);
    process_tell(self, READY);
    check(process_await(self, GO, 1, 30000));
    for (int i = 0; i < TELLERS; i++) {
        tellers[i] = (struct teller){office, i};
        actor_begin(actor[i] = actor_start(), transfer_often, &tellers[i]);
    }
    for (int i = 0; i < TELLERS; i++)
        actor_stop(actor[i]);
    office_close(office);
}

Law(transfers, of_processes_that_name_both_accounts_in_any_order_add_up)
{
    struct ledger *ledger = ledger_new();
    struct office office[PROCESSES];
    struct process *process[PROCESSES];
    long sum = 0;
    for (int i = 0; i < PROCESSES; i++) {
        office[i] = (struct office){.ledger = ledger, .url = redis_server_url(server), .number = i};
        process[i] = process_start(office_work, &office[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        check(process_await(process[i], READY, 1, 30000));
    for (int i = 0; i < PROCESSES; i++)
        process_tell(process[i], GO);
    for (int i = 0; i < PROCESSES; i++)
        check_int(process_finish(process[i], 60000), 0);
    for (int i = 0; i < ACCOUNTS; i++)
        sum += ledger->balance[i];
    check_int(sum, (long)ACCOUNTS * START);
    expect_nothing_left();
    munmap(ledger, sizeof *ledger);
}

/* It holds "area", and waits for "bay". */
static void wait_until_killed(struct process *self, void *arg)
{
    hl_client *client = NULL;
    hl_lock *members[2], *both = NULL;
    (void)self;
    expect_ok(hl_client_open(arg, CLIENT(.watchdog_timeout_ms = slow_ms(1500), .poll_ms = 100),
                             &client, NULL));
    expect_ok(hl_lock_new(client, "area", &members[0], NULL));
    expect_ok(hl_lock_new(client, "bay", &members[1], NULL));
    expect_ok(hl_multi_lock_new(members, 2, NULL, &both, NULL));
    int rc = hl_lock_acquire(both, NULL); /* in vain */
    check_msg(false, "it has both: %d", rc);
}

Law(transfers, are_held_up_by_a_process_that_dies_in_its_wait_for_its_lease_at_most)
{
    stranger_takes("bay", 60000);
    struct process *process =
        process_start(wait_until_killed, (void *)(uintptr_t)redis_server_url(server));
    check(redis_wait_int(server, 1, 5000, "EXISTS area"));
    check(redis_wait_int(server, 1, 5000, "ZCARD hirelock_queue:{bay}"));
    process_kill(process);
    process_finish(process, 1000);
    hl_lock *lock = new_multi(open_client(CLIENT(.poll_ms = 100)), "bay area");
    stranger_leaves("bay");
    expect_ok(hl_lock_acquire_for(lock, slow_ms(10000), NULL));
    expect_ok(hl_lock_release(lock, NULL));
    expect_nothing_left();
}
