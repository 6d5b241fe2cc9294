/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Lookups: one evdns base each, retired by an event of its own. */
#include "redis/lookup.h"

#include <hirelock/error.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>

struct hli_lookup { /* loop thread */
    struct event_base *base;
    struct evdns_base *dns;
    struct evdns_getaddrinfo_request *request; /* NULL once it is answered */
    hli_lookup_cb done;                        /* NULL once it is dropped */
    void *arg;
    bool is_over;
};

static void lookup_free(evutil_socket_t fd, short what, void *arg)
{
    struct hli_lookup *lookup = arg;

    (void)fd, (void)what;
    if (lookup->dns)
        evdns_base_free(lookup->dns, 0);
    free(lookup);
}

/* In a turn of the loop of its own: an answered lookup may have a second request (IPv6 beside IPv4)
 * whose end is told in this one. */
static void lookup_retire(struct hli_lookup *lookup)
{
    const struct timeval at_once = {0, 0};

    if (event_base_once(lookup->base, -1, EV_TIMEOUT, lookup_free, lookup, &at_once) < 0)
        lookup_free(-1, 0, lookup); /* without memory nothing else can be done */
}

static void lookup_answered(int problem, struct evutil_addrinfo *addresses, void *arg)
{
    struct hli_lookup *lookup = arg;

    lookup->request = NULL;
    lookup->is_over = true;
    if (lookup->done) {
        lookup->done(problem, addresses, lookup->arg);
        return;
    }
    if (addresses)
        evutil_freeaddrinfo(addresses);
    lookup_retire(lookup);
}

static int lookup_prepare(struct hli_lookup *lookup)
{
    lookup->dns = evdns_base_new(lookup->base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
    if (!lookup->dns) { /* no resolv.conf to speak of: the hosts file is left */
        lookup->dns = evdns_base_new(lookup->base, 0);
        if (!lookup->dns)
            return HL_ENOMEM;
        evdns_base_load_hosts(lookup->dns, "/etc/hosts");
    }
    /* Some name servers never answer for IPv6: evdns would wait 3 s for that, for each of a link's
     * two connections, which is more than its connect timeout. */
    evdns_base_set_option(lookup->dns, "getaddrinfo-allow-skew:", "0.5");
    return 0;
}

struct hli_lookup *hli_lookup_new(struct hli_loop *loop, hli_lookup_cb done, void *arg)
{
    struct hli_lookup *lookup = calloc(1, sizeof(*lookup));

    if (!lookup)
        return NULL;
    *lookup = (struct hli_lookup){.base = hli_loop_base(loop), .done = done, .arg = arg};
    if (lookup_prepare(lookup) < 0) {
        free(lookup);
        return NULL;
    }
    return lookup;
}

void hli_lookup_start(struct hli_lookup *lookup, const char *host, const char *port)
{
    const struct evutil_addrinfo hints = {.ai_flags = EVUTIL_AI_NUMERICSERV,
                                          .ai_family = AF_UNSPEC,
                                          .ai_socktype = SOCK_STREAM,
                                          .ai_protocol = IPPROTO_TCP};
    struct evdns_getaddrinfo_request *request =
        evdns_getaddrinfo(lookup->dns, host, port, &hints, lookup_answered, lookup);

    if (request)
        lookup->request = request; /* else it was answered inside, and `lookup` is still there */
}

bool hli_lookup_is_over(const struct hli_lookup *lookup)
{
    return lookup->is_over;
}

void hli_lookup_drop(struct hli_lookup *lookup)
{
    if (!lookup)
        return;
    lookup->done = NULL;
    if (lookup->request)
        evdns_getaddrinfo_cancel(lookup->request); /* lookup_answered is still to come */
    else
        lookup_retire(lookup);
}
