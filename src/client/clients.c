/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * The list of clients, with the one process-wide thing that the library installs: a pthread_atfork
 * handler. Before a fork the list's mutex is taken, so that the child finds it whole; the child
 * takes no other mutex, for their holders are gone.
 */
#include "client/clients.h"

#include "base/bell.h"
#include "lease/owner.h"
#include "lease/watchdog.h"

#include <pthread.h>

static pthread_mutex_t clients_mutex = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, hl_client) clients = TAILQ_HEAD_INITIALIZER(clients);
static pthread_once_t clients_once = PTHREAD_ONCE_INIT;

static void clients_before_fork(void)
{
    pthread_mutex_lock(&clients_mutex);
}

static void clients_after_fork_in_parent(void)
{
    pthread_mutex_unlock(&clients_mutex);
}

/* The descriptors are closed without a word: an UNSUBSCRIBE or an EPOLL_CTL_DEL of the child's
 * would be the parent's too. Were they left open, a parent that dies would look alive to the
 * server. */
static void clients_after_fork_in_child(void)
{
    hl_client *client;

    atomic_fetch_add(&hli_generation, 1);
    hli_bell_forget_all();
    TAILQ_FOREACH (client, &clients, clients_link) {
        hli_link_abandon(client->link);
        hli_loop_abandon(client->loop);
        hli_callbacks_abandon(&client->callbacks);
    }
    TAILQ_INIT(&clients);
    pthread_mutex_unlock(&clients_mutex);
}

/* The clients' mutex and then a watchdog's: the one place where these two are held together. */
static void clients_on_thread_exit(void)
{
    hl_client *client;

    pthread_mutex_lock(&clients_mutex);
    TAILQ_FOREACH (client, &clients, clients_link)
        hli_watchdog_review(client->watchdog);
    pthread_mutex_unlock(&clients_mutex);
}

static void clients_install(void)
{
    hli_owner_on_exit(clients_on_thread_exit);
    pthread_atfork(clients_before_fork, clients_after_fork_in_parent, clients_after_fork_in_child);
}

void hli_clients_add(hl_client *client)
{
    pthread_once(&clients_once, clients_install);
    pthread_mutex_lock(&clients_mutex);
    TAILQ_INSERT_TAIL(&clients, client, clients_link);
    pthread_mutex_unlock(&clients_mutex);
}

void hli_clients_remove(hl_client *client)
{
    pthread_mutex_lock(&clients_mutex);
    TAILQ_REMOVE(&clients, client, clients_link);
    pthread_mutex_unlock(&clients_mutex);
}
