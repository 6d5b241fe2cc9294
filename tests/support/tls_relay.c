/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* One thread for each connection, and one that accepts them. */
#include "tls_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fatal.h"
#include "listener.h"
#include "redis_server.h"

enum { RELAY_CONNECTIONS = 64, RELAY_BYTES = 16384, RELAY_LOOK_MS = 20 };
enum { RECORD_HANDSHAKE = 22, HANDSHAKE_CLIENT_HELLO = 1, HANDSHAKE_KEY_UPDATE = 24 };

struct tls_relay {
    struct redis_server *server;
    enum tls_relay_manner manner;
    SSL_CTX *context;
    int fd, port;
    atomic_bool is_over;
    atomic_int new_keys, answers, asked, hellos, connections;
    pthread_t thread, worker[RELAY_CONNECTIONS];
    pthread_mutex_t mutex; /* guards the line below */
    char wanted_host[RELAY_CONNECTIONS][256];
};

struct relay_connection {
    struct tls_relay *relay;
    int client, number;
};

static void relay_on_message(int is_sent, int version, int type, const void *bytes, size_t length,
                             SSL *ssl, void *arg)
{
    struct tls_relay *relay = arg;
    (void)version;
    (void)ssl;
    if (is_sent || type != RECORD_HANDSHAKE || length == 0)
        return;
    if (*(const unsigned char *)bytes == HANDSHAKE_KEY_UPDATE)
        atomic_fetch_add(&relay->new_keys, 1);
    if (*(const unsigned char *)bytes == HANDSHAKE_CLIENT_HELLO)
        atomic_fetch_add(&relay->hellos, 1);
}

static int relay_on_hello(SSL *ssl, int *alert, void *arg)
{
    const struct relay_connection *connection = SSL_get_app_data(ssl);
    struct tls_relay *relay = arg;
    const char *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    pthread_mutex_lock(&relay->mutex);
    snprintf(relay->wanted_host[connection->number], sizeof relay->wanted_host[0], "%s",
             host ? host : "");
    pthread_mutex_unlock(&relay->mutex);
    return SSL_TLSEXT_ERR_OK;
}

static void relay_make_blocking(int fd)
{
    must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
}

/* False when the connection has ended. */
static bool relay_up(SSL *ssl, int server)
{
    char bytes[RELAY_BYTES];
    do {
        int got = SSL_read(ssl, bytes, sizeof bytes);
        if (got <= 0 && SSL_get_error(ssl, got) == SSL_ERROR_WANT_READ)
            return true; /* a record without data */
        if (got <= 0 || send(server, bytes, (size_t)got, MSG_NOSIGNAL) != got)
            return false;
    } while (SSL_pending(ssl) > 0);
    return true;
}

static bool relay_down(struct tls_relay *relay, SSL *ssl, int server, bool *is_asked)
{
    enum tls_relay_manner manner = relay->manner;
    char bytes[RELAY_BYTES];
    ssize_t got = recv(server, bytes, sizeof bytes, 0);
    if (got <= 0)
        return false;
    if (manner == TLS_RELAY_NEW_KEYS)
        SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
    if (manner == TLS_RELAY_JUNK && atomic_fetch_add(&relay->answers, 1) == 0) {
        static const char junk[37] = "\x17\x03\x03\x00\x20";
        return send(SSL_get_fd(ssl), junk, sizeof junk, MSG_NOSIGNAL) == sizeof junk;
    }
    if (SSL_write(ssl, bytes, (int)got) != (int)got)
        return false;
    if (manner == TLS_RELAY_RENEGOTIATES && !*is_asked) {
        *is_asked = true;
        atomic_fetch_add(&relay->asked, 1);
        return SSL_renegotiate(ssl) == 1 && SSL_do_handshake(ssl) == 1;
    }
    return true;
}

/* A ServerHello: TLS 1.1, 32 random bytes (zeros), no session, a cipher, no compression. */
static bool relay_say_old_hello(int client)
{
    static const char hello[47] = {0x16, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2, [45] = 0x2f};
    return send(client, hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
}

static void relay_serve(struct tls_relay *relay, SSL *ssl, int client, int server)
{
    struct pollfd polled[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    bool is_asked = false;
    bool goes_on =
        (relay->manner != TLS_RELAY_OLDER || relay_say_old_hello(client)) && SSL_accept(ssl) == 1;
    while (goes_on && !atomic_load(&relay->is_over)) {
        if (poll(polled, 2, RELAY_LOOK_MS) <= 0)
            continue;
        if (polled[0].revents)
            goes_on = relay_up(ssl, server);
        if (goes_on && polled[1].revents)
            goes_on = relay_down(relay, ssl, server, &is_asked);
    }
}

static void *relay_connection_run(void *arg)
{
    struct relay_connection *connection = arg;
    struct tls_relay *relay = connection->relay;
    int client = connection->client,
        server = listener_connect_unix(redis_server_socket(relay->server));
    must(server >= 0);
    relay_make_blocking(client);
    relay_make_blocking(server);
    SSL *ssl = SSL_new(relay->context);
    must(ssl && SSL_set_fd(ssl, client) && SSL_set_app_data(ssl, connection));
    relay_serve(relay, ssl, client, server);
    SSL_free(ssl);
    close(client);
    close(server);
    free(connection);
    return NULL;
}

/* SSL_write() to a client that has gone fails then. The threads of the connections have this mask,
 * too; the library under test has none of it. */
static void relay_ignore_broken_pipes(void)
{
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    must(pthread_sigmask(SIG_BLOCK, &broken, NULL) == 0);
}

static void *relay_run(void *arg)
{
    struct tls_relay *relay = arg;
    struct pollfd polled = {.fd = relay->fd, .events = POLLIN};
    relay_ignore_broken_pipes();
    while (!atomic_load(&relay->is_over)) {
        int client = poll(&polled, 1, RELAY_LOOK_MS) > 0 ? accept(relay->fd, NULL, NULL) : -1;
        int count = atomic_load(&relay->connections);
        if (client < 0)
            continue;
        struct relay_connection *connection = malloc(sizeof *connection);
        must(connection && count < RELAY_CONNECTIONS);
        *connection = (struct relay_connection){relay, client, count};
        atomic_store(&relay->connections, count + 1);
        must(pthread_create(&relay->worker[count], NULL, relay_connection_run, connection) == 0);
    }
    return NULL;
}

struct tls_relay *tls_relay_start(struct redis_server *server, const char *dir,
                                  enum tls_relay_manner manner)
{
    struct tls_relay *relay = calloc(1, sizeof *relay);
    char certificate[160], key[160];
    must(relay);
    relay->server = server;
    relay->manner = manner;
    snprintf(certificate, sizeof certificate, "%s/server.pem", dir);
    snprintf(key, sizeof key, "%s/server.key", dir);
    relay->context = SSL_CTX_new(TLS_server_method());
    must(relay->context &&
         SSL_CTX_use_certificate_file(relay->context, certificate, SSL_FILETYPE_PEM) == 1 &&
         SSL_CTX_use_PrivateKey_file(relay->context, key, SSL_FILETYPE_PEM) == 1);
    if (manner == TLS_RELAY_RENEGOTIATES)
        SSL_CTX_set_max_proto_version(relay->context, TLS1_2_VERSION);
    /* Level 0, because the signatures of TLS 1.1 are by SHA-1. */
    if (manner == TLS_RELAY_OLD)
        must(SSL_CTX_set_min_proto_version(relay->context, TLS1_VERSION) == 1 &&
             SSL_CTX_set_max_proto_version(relay->context, TLS1_1_VERSION) == 1 &&
             SSL_CTX_set_cipher_list(relay->context, "DEFAULT@SECLEVEL=0") == 1);
    SSL_CTX_clear_mode(relay->context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_msg_callback(relay->context, relay_on_message);
    SSL_CTX_set_msg_callback_arg(relay->context, relay);
    pthread_mutex_init(&relay->mutex, NULL);
    SSL_CTX_set_tlsext_servername_callback(relay->context, relay_on_hello);
    SSL_CTX_set_tlsext_servername_arg(relay->context, relay);
    relay->fd = listener_open_tcp(&relay->port);
    must(relay->fd >= 0);
    must(pthread_create(&relay->thread, NULL, relay_run, relay) == 0);
    return relay;
}

void tls_relay_stop(void *arg)
{
    struct tls_relay *relay = arg;
    atomic_store(&relay->is_over, true);
    pthread_join(relay->thread, NULL);
    for (int i = 0; i < atomic_load(&relay->connections); i++)
        pthread_join(relay->worker[i], NULL);
    close(relay->fd);
    SSL_CTX_free(relay->context);
    pthread_mutex_destroy(&relay->mutex);
    free(relay);
}

int tls_relay_port(const struct tls_relay *relay)
{
    return relay->port;
}

int tls_relay_new_keys(struct tls_relay *relay)
{
    return atomic_load(&relay->new_keys);
}

int tls_relay_asked(struct tls_relay *relay)
{
    return atomic_load(&relay->asked);
}

int tls_relay_hellos(struct tls_relay *relay)
{
    return atomic_load(&relay->hellos);
}

int tls_relay_connections(struct tls_relay *relay)
{
    return atomic_load(&relay->connections);
}

const char *tls_relay_wanted_host(struct tls_relay *relay, int i)
{
    pthread_mutex_lock(&relay->mutex);
    const char *host = relay->wanted_host[i]; /* it is written once */
    pthread_mutex_unlock(&relay->mutex);
    return host;
}
