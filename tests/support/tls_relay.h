/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/*
 * A relay that speaks TLS with clients and plain Redis with a server (.tcp), on a thread of its
 * own. It does what no redis-server can be asked for: new keys, renegotiation, an old version.
 */
#ifndef HL_TEST_TLS_RELAY_H
#define HL_TEST_TLS_RELAY_H

struct redis_server;
struct tls_relay;

enum tls_relay_manner {
    TLS_RELAY_HONEST,       /* it only passes on what is said */
    TLS_RELAY_NEW_KEYS,     /* before each answer it asks for new keys (TLS 1.3) */
    TLS_RELAY_JUNK,         /* in place of its first answer comes a record that nobody encrypted */
    TLS_RELAY_RENEGOTIATES, /* once, behind the first answer, it asks for a new handshake (TLS 1.2)
                             */
    TLS_RELAY_OLD,          /* it speaks TLS 1.1 at most, and says so */
    TLS_RELAY_OLDER /* it goes on in TLS 1.1 whatever was proposed, as servers older than 1.3 do */
};

/* Its certificate is DIR/server.pem. */
struct tls_relay *tls_relay_start(struct redis_server *server, const char *dir,
                                  enum tls_relay_manner manner);
void tls_relay_stop(void *relay);
int tls_relay_port(const struct tls_relay *relay);
int tls_relay_new_keys(struct tls_relay *relay); /* how many times a client changed its keys */
int tls_relay_asked(struct tls_relay *relay);    /* renegotiations */
int tls_relay_hellos(struct tls_relay *relay);   /* ClientHellos */
int tls_relay_connections(struct tls_relay *relay);
/* The host that connection i asked for (SNI); "": for none, or its ClientHello has not come. */
const char *tls_relay_wanted_host(struct tls_relay *relay, int i);

#endif
