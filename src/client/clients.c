/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The list of clients, with the one process-wide thing that the library installs: a pthread_atfork
 * handler. The forking thread takes the list's mutex, so that the child finds the list consistent.
 * The child takes no other mutex, because the threads that held them are gone.
 */
#include "client/clients.h"

#include "base/thread.h"
#include "base/wakefd.h"
#include "lease/acquire/deadlock.h"
#include "lease/calls/owner.h"
#include "lease/hold/watchdog.h"

#include <pthread.h>

static hli_mutex clients_mutex = HLI_MUTEX_INIT;
static TAILQ_HEAD(, hl_client) clients = TAILQ_HEAD_INITIALIZER(clients);
static pthread_once_t clients_once = PTHREAD_ONCE_INIT;

static void clients_before_fork(void)
{
    hli_mutex_lock(&clients_mutex);
}

static void clients_after_fork_in_parent(void)
{
    hli_mutex_unlock(&clients_mutex);
}

/* The child closes the descriptors and sends nothing: an UNSUBSCRIBE or an EPOLL_CTL_DEL of the
 * child would also change the parent's state. If the child left them open, the server would take a
 * dead parent for alive. */
static void clients_after_fork_in_child(void)
{
    hl_client *client;

    atomic_fetch_add(&hli_generation, 1);
    hli_wakefd_abandon_all();
    hli_callbacks_forget_all();
    hli_blocked_forget_all();
    TAILQ_FOREACH (client, &clients, clients_link) {
        hli_topology_abandon(client->topology);
        hli_callbacks_abandon(&client->callbacks);
    }
    TAILQ_INIT(&clients);
    hli_mutex_unlock(&clients_mutex);
}

/* The clients' mutex and then a watchdog's: the one place where these two are held together. */
static void clients_on_thread_exit(void)
{
    hl_client *client;

    hli_mutex_lock(&clients_mutex);
    TAILQ_FOREACH (client, &clients, clients_link)
        hli_watchdog_review(client->watchdog);
    hli_mutex_unlock(&clients_mutex);
}

static void clients_install(void)
{
    hli_owner_on_exit(clients_on_thread_exit);
    pthread_atfork(clients_before_fork, clients_after_fork_in_parent, clients_after_fork_in_child);
}

void hli_clients_add(hl_client *client)
{
    pthread_once(&clients_once, clients_install);
    hli_mutex_lock(&clients_mutex);
    TAILQ_INSERT_TAIL(&clients, client, clients_link);
    hli_mutex_unlock(&clients_mutex);
}

void hli_clients_remove(hl_client *client)
{
    hli_mutex_lock(&clients_mutex);
    TAILQ_REMOVE(&clients, client, clients_link);
    hli_mutex_unlock(&clients_mutex);
}
