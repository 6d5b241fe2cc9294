/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Look-ups, each on a detached thread. A look-up moves between these states; the loop alone changes
 * them:
 *
 *     QUEUED --a thread is allowed--> ASKING --answered--> gone
 *                                                    \--> KEPT, if nobody waits for it any more
 *
 * Who asks waits for the first look-up of a name, the patient one. When that is late, hasty ones
 * come beside it, and the first that has an address serves all who wait. That there is none is
 * the patient one's word alone.
 *
 * The thread and the client share the look-up and the wakefd of the resolver, and count them. So a
 * client is closed while getaddrinfo() hangs, and the thread frees what is left when it returns.
 */
#include "redis/resolver.h"

#include "base/error.h"
#include "base/ref.h"
#include "base/thread.h"
#include "base/wakefd.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUP_PATIENT, LOOKUP_HASTY, LOOKUP_HASTY_IPV4, LOOKUP_WAYS };

struct hli_resolver {
    struct hli_ref ref;       /* of the client, and of each look-up */
    struct hli_wakefd wakefd; /* of all look-ups; any thread */

    struct hli_loop *loop; /* loop thread, as all below */
    struct event *answered;
    struct hli_timer late; /* a patient look-up that somebody waits for may be late */
    hli_ns keep;
    TAILQ_HEAD(, hli_lookup) lookups;
    unsigned asking;
    bool has_asked;
};

struct hli_lookup {
    struct hli_ref ref; /* of the resolver's list, of the thread, and of each ask */
    struct hli_resolver *resolver;

    atomic_bool is_answered; /* the next three are the thread's before it, the loop's after it */
    struct addrinfo *addresses;
    int problem, reason; /* of getaddrinfo(), and errno */

    enum { LOOKUP_QUEUED, LOOKUP_ASKING, LOOKUP_KEPT } state; /* loop thread, as all below */
    hli_ns late_at, kept_until;
    bool is_owed; /* somebody has asked since it served the last one */
    TAILQ_ENTRY(hli_lookup) link;
    TAILQ_HEAD(, hli_name_ask) asks; /* that wait; for a patient one */

    int way;     /* immutable */
    char host[]; /* immutable */
};

static void resolver_unref(struct hli_resolver *resolver)
{
    if (hli_ref_drop(&resolver->ref))
        free(resolver);
}

static void lookup_unref(struct hli_lookup *lookup)
{
    if (!hli_ref_drop(&lookup->ref))
        return;
    if (lookup->addresses)
        freeaddrinfo(lookup->addresses);
    resolver_unref(lookup->resolver);
    free(lookup);
}

/* In this thread a name server that says nothing has 1 s, not 5, until the next one is asked. What
 * resolv.conf and RES_OPTIONS say goes before: res_init() reads them on top of what it finds
 * (resolver(3)); that getaddrinfo() reads them again would undo it. The patient look-up is there
 * for a server that needs several seconds. Other C libraries than glibc have no such setting; musl
 * asks all servers at once. */
static void lookup_haste(void)
{
#ifdef RES_NORELOAD
    _res.retrans = 1;
    if (res_init() == 0)
        _res.options |= RES_NORELOAD;
#endif
}

/* IPv4 alone, because some name servers drop the question for IPv6, and getaddrinfo() waits for
 * both answers. */
static void *lookup_run(void *arg)
{
    struct hli_lookup *lookup = arg;
    const struct addrinfo hints = {.ai_family =
                                       lookup->way == LOOKUP_HASTY_IPV4 ? AF_INET : AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_protocol = IPPROTO_TCP,
                                   .ai_flags = AI_ADDRCONFIG};

    if (lookup->way != LOOKUP_PATIENT)
        lookup_haste();
    lookup->problem = getaddrinfo(lookup->host, NULL, &hints, &lookup->addresses);
    lookup->reason = errno;
    atomic_store(&lookup->is_answered, true);
    hli_wakefd_wake(&lookup->resolver->wakefd);
    lookup_unref(lookup);
    return NULL;
}

/* Takes the reference of the list. */
static void lookup_leave(struct hli_lookup *lookup)
{
    TAILQ_REMOVE(&lookup->resolver->lookups, lookup, link);
    lookup_unref(lookup);
}

static void lookup_say_why(const struct hli_lookup *lookup, char *text, size_t size)
{
    char reason[96];

    hli_error_reason(reason, sizeof(reason), lookup->reason);
    snprintf(text, size, "no address of this host name: %s",
             lookup->problem == EAI_SYSTEM ? reason : gai_strerror(lookup->problem));
}

static struct hli_lookup *resolver_find(struct hli_resolver *resolver,
                                        bool (*is_it)(const struct hli_lookup *lookup,
                                                      const void *arg),
                                        const void *arg)
{
    struct hli_lookup *lookup;

    TAILQ_FOREACH (lookup, &resolver->lookups, link)
        if (is_it(lookup, arg)) /* NOLINT(clang-analyzer-unix.Malloc): the list has a reference */
            break;
    return lookup;
}

static bool lookup_is_answered(const struct hli_lookup *lookup, const void *arg)
{
    (void)arg;
    return lookup->state == LOOKUP_ASKING && atomic_load(&lookup->is_answered);
}

static bool lookup_is_queued(const struct hli_lookup *lookup, const void *arg)
{
    (void)arg;
    return lookup->state == LOOKUP_QUEUED;
}

static bool lookup_is_stale(const struct hli_lookup *lookup, const void *now)
{
    return lookup->state == LOOKUP_KEPT && lookup->kept_until < *(const hli_ns *)now;
}

static bool lookup_is_kept_of(const struct hli_lookup *lookup, const void *host)
{
    return lookup->state == LOOKUP_KEPT && strcmp(lookup->host, host) == 0;
}

static bool lookup_is_patient_of(const struct hli_lookup *lookup, const void *host)
{
    return lookup->way == LOOKUP_PATIENT && lookup->state != LOOKUP_KEPT &&
           strcmp(lookup->host, host) == 0;
}

/* Those who wait for the patient look-up. */
static void lookup_take_asks(struct hli_lookup *lookup)
{
    struct hli_lookup *patient =
        resolver_find(lookup->resolver, lookup_is_patient_of, lookup->host);
    struct hli_name_ask *ask;

    if (!patient)
        return;
    while ((ask = TAILQ_FIRST(&patient->asks))) {
        TAILQ_REMOVE(&patient->asks, ask, link);
        lookup_unref(patient); /* the list has a reference, too */
        hli_ref_take(&lookup->ref);
        ask->lookup = lookup;
        TAILQ_INSERT_TAIL(&lookup->asks, ask, link);
    }
    lookup->is_owed = patient->is_owed;
    patient->is_owed = false;
}

/* All who wait are told. An address for which nobody waits any more is kept. */
static void lookup_tell(struct hli_lookup *lookup)
{
    const struct addrinfo *addresses = lookup->problem == 0 ? lookup->addresses : NULL;
    struct hli_name_ask *ask;
    char why[160];

    lookup->resolver->asking--;
    if (addresses && lookup->way != LOOKUP_PATIENT)
        lookup_take_asks(lookup);
    if (TAILQ_EMPTY(&lookup->asks) && lookup->is_owed && addresses) {
        lookup->state = LOOKUP_KEPT;
        lookup->kept_until = hli_now() + lookup->resolver->keep;
        return;
    }
    lookup_say_why(lookup, why, sizeof(why));
    TAILQ_REMOVE(&lookup->resolver->lookups, lookup, link);
    while ((ask = TAILQ_FIRST(&lookup->asks))) {
        TAILQ_REMOVE(&lookup->asks, ask, link);
        ask->is_waiting = false;
        ask->done(ask, addresses, why);
    }
    lookup_unref(lookup); /* the list's */
}

/* Somebody waits for this patient one: others come beside it when it is late. */
static void lookup_watch(const struct hli_lookup *lookup)
{
    hli_timer_set_earlier(lookup->resolver->loop, &lookup->resolver->late, lookup->late_at);
}

/* Without a thread it is answered at once: out of memory. */
static void lookup_begin(struct hli_lookup *lookup)
{
    hli_thread thread;

    lookup->state = LOOKUP_ASKING;
    lookup->late_at = hli_after_ms(hli_now(), HLI_RESOLVER_LATE_MS);
    if (lookup->way == LOOKUP_PATIENT)
        lookup_watch(lookup);
    lookup->resolver->asking++;
    lookup->resolver->has_asked = true;
    hli_ref_take(&lookup->ref); /* the thread's */
    if (hli_thread_start(&thread, "hirelock-name", lookup_run, lookup) == 0) {
        hli_thread_detach(thread);
        return;
    }
    lookup->problem = EAI_SYSTEM;
    lookup->reason = errno;
    atomic_store(&lookup->is_answered, true);
    hli_wakefd_wake(&lookup->resolver->wakefd);
    lookup_unref(lookup);
}

/* Begins what is queued, as far as threads are allowed. */
static void resolver_go_on(struct hli_resolver *resolver)
{
    struct hli_lookup *lookup;

    while (resolver->asking < HLI_RESOLVER_THREADS &&
           (lookup = resolver_find(resolver, lookup_is_queued, NULL)))
        lookup_begin(lookup);
}

static void resolver_on_answers(evutil_socket_t fd, short what, void *arg)
{
    struct hli_resolver *resolver = arg;
    struct hli_lookup *lookup;

    (void)fd, (void)what;
    hli_wakefd_clear(&resolver->wakefd);
    while ((lookup = resolver_find(resolver, lookup_is_answered, NULL)))
        lookup_tell(lookup);
    resolver_go_on(resolver);
}

/* A client that meets no host name needs no descriptor for it. Errors: HL_ENOMEM, and errno has the
 * reason. */
static int resolver_open(struct hli_resolver *resolver)
{
    struct event_base *base = hli_loop_base(resolver->loop);

    if (resolver->answered)
        return 0;
    if (hli_wakefd_open(&resolver->wakefd) < 0)
        return HL_ENOMEM;
    resolver->answered = event_new(base, atomic_load(&resolver->wakefd.fd), EV_READ | EV_PERSIST,
                                   resolver_on_answers, resolver);
    if (resolver->answered && event_add(resolver->answered, NULL) == 0)
        return 0;
    if (resolver->answered)
        event_free(resolver->answered);
    resolver->answered = NULL;
    errno = ENOMEM;
    return HL_ENOMEM;
}

/* NULL when memory or descriptors are out, and errno has the reason. */
static struct hli_lookup *resolver_add(struct hli_resolver *resolver, const char *host, int way)
{
    size_t size = strlen(host) + 1;
    struct hli_lookup *lookup =
        resolver_open(resolver) == 0 ? calloc(1, sizeof(*lookup) + size) : NULL;

    if (!lookup)
        return NULL;
    hli_ref_init(&lookup->ref); /* the list's */
    hli_ref_take(&resolver->ref);
    lookup->resolver = resolver;
    lookup->way = way;
    memcpy(lookup->host, host, size);
    TAILQ_INIT(&lookup->asks);
    TAILQ_INSERT_TAIL(&resolver->lookups, lookup, link);
    return lookup;
}

struct lookup_wanted {
    const char *host;
    int way;
};

static bool lookup_is_under_way(const struct hli_lookup *lookup, const void *arg)
{
    const struct lookup_wanted *wanted = arg;

    return lookup->way == wanted->way && lookup->state == LOOKUP_ASKING &&
           strcmp(lookup->host, wanted->host) == 0;
}

/* A patient one is late: the hasty ones begin, unless they are under way. */
static void lookup_begin_others(const struct hli_lookup *lookup)
{
    struct hli_resolver *resolver = lookup->resolver;

    for (int way = LOOKUP_PATIENT + 1; way < LOOKUP_WAYS; way++) {
        const struct lookup_wanted wanted = {.host = lookup->host, .way = way};
        if (resolver->asking >= HLI_RESOLVER_THREADS ||
            resolver_find(resolver, lookup_is_under_way, &wanted))
            continue;
        struct hli_lookup *other = resolver_add(resolver, lookup->host, way);
        if (other)
            lookup_begin(other);
    }
}

static void resolver_on_late(void *arg)
{
    struct hli_resolver *resolver = arg;
    const hli_ns now = hli_now();
    struct hli_lookup *lookup;

    TAILQ_FOREACH (lookup, &resolver->lookups, link) {
        if (lookup->state != LOOKUP_ASKING || TAILQ_EMPTY(&lookup->asks))
            continue;
        if (lookup->late_at <= now)
            lookup_begin_others(lookup);
        else
            lookup_watch(lookup);
    }
}

static void ask_fail(struct hli_name_ask *ask, int problem)
{
    char reason[96], why[160];

    snprintf(why, sizeof(why), "no look-up of this host name: %s",
             hli_error_reason(reason, sizeof(reason), problem));
    ask->done(ask, NULL, why);
}

void hli_resolver_ask(struct hli_resolver *resolver, struct hli_name_ask *ask, const char *host)
{
    const hli_ns now = hli_now();
    struct hli_lookup *lookup;

    while ((lookup = resolver_find(resolver, lookup_is_stale, &now)))
        lookup_leave(lookup);
    lookup = resolver_find(resolver, lookup_is_kept_of, host);
    if (!lookup)
        lookup = resolver_find(resolver, lookup_is_patient_of, host);
    if (!lookup && !(lookup = resolver_add(resolver, host, LOOKUP_PATIENT))) {
        ask_fail(ask, errno);
        return;
    }
    ask->lookup = lookup;
    hli_ref_take(&lookup->ref); /* the ask's */
    if (lookup->state == LOOKUP_KEPT) {
        lookup_leave(lookup);                    /* it is good for one attempt */
        ask->done(ask, lookup->addresses, NULL); /* NOLINT(clang-analyzer-unix.Malloc): as above */
        return;
    }
    ask->is_waiting = lookup->is_owed = true;
    TAILQ_INSERT_TAIL(&lookup->asks, ask, link);
    resolver_go_on(resolver);
    if (lookup->state == LOOKUP_ASKING)
        lookup_watch(lookup);
}

void hli_name_ask_drop(struct hli_name_ask *ask)
{
    if (!ask->lookup)
        return;
    if (ask->is_waiting)
        TAILQ_REMOVE(&ask->lookup->asks, ask, link);
    ask->is_waiting = false;
    lookup_unref(ask->lookup);
    ask->lookup = NULL;
}

struct hli_resolver *hli_resolver_new(struct hli_loop *loop, int64_t keep_ms)
{
    struct hli_resolver *resolver = calloc(1, sizeof(*resolver));

    if (!resolver)
        return NULL;
    hli_ref_init(&resolver->ref); /* the client's */
    hli_wakefd_init(&resolver->wakefd);
    resolver->loop = loop;
    resolver->keep = HLI_MS(keep_ms);
    resolver->late = (struct hli_timer){.run = resolver_on_late, .arg = resolver};
    TAILQ_INIT(&resolver->lookups);
    return resolver;
}

void hli_resolver_stop(struct hli_resolver *resolver)
{
    if (resolver->answered)
        event_free(resolver->answered);
    resolver->answered = NULL;
    hli_timer_clear(resolver->loop, &resolver->late);
    hli_wakefd_close(&resolver->wakefd);
}

/* A thread may be on its last steps, too: nobody knows. Not on the loop, which would wait for one
 * who closes a client inside dlclose(). */
void hli_resolver_free(struct hli_resolver *resolver)
{
    struct hli_lookup *lookup;

    if (!resolver)
        return;
    if (resolver->has_asked)
        hli_thread_keep_library();
    while ((lookup = TAILQ_FIRST(&resolver->lookups)))
        lookup_leave(lookup); /* NOLINT(clang-analyzer-unix.Malloc): the list has a reference */
    resolver_unref(resolver);
}

/* The child has none of the threads. */
void hli_resolver_abandon(struct hli_resolver *resolver)
{
    hli_wakefd_abandon(&resolver->wakefd);
}
