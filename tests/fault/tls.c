/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* TLS: which servers are accepted, and the reason when one is not; what goes wrong in between. */

#include "support/certificates.h"
#include "support/kit.h"
#include "support/listener.h"
#include "support/recorder.h"
#include "support/tls_relay.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int contexts, decoded;
static char asked_host[64];

/* The linker puts these in the place of what they are named for (CMakeLists.txt). */
SSL_CTX *__real_SSL_CTX_new(const SSL_METHOD *method);
SSL_CTX *__wrap_SSL_CTX_new(const SSL_METHOD *method);
X509 *__real_d2i_X509_AUX(X509 **ret_certificate, const unsigned char **at, long length);
X509 *__wrap_d2i_X509_AUX(X509 **ret_certificate, const unsigned char **at, long length);
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses);

SSL_CTX *__wrap_SSL_CTX_new(const SSL_METHOD *method)
{
    atomic_fetch_add(&contexts, 1);
    return __real_SSL_CTX_new(method);
}

/* By the library: an authority. OpenSSL decodes the server's certificate itself. */
X509 *__wrap_d2i_X509_AUX(X509 **ret_certificate, const unsigned char **at, long length)
{
    atomic_fetch_add(&decoded, 1);
    return __real_d2i_X509_AUX(ret_certificate, at, length);
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_addresses)
{
    bool is_ours = strncmp(host, "dotted.test", 11) == 0 && !(hints->ai_flags & AI_NUMERICHOST);

    if (is_ours)
        snprintf(asked_host, sizeof asked_host, "%s", host);
    return __real_getaddrinfo(is_ours ? "127.0.0.1" : host, service, hints, ret_addresses);
}

static void tls_up(void)
{
    server_up_with(&(struct redis_options){.tls = true});
}

#define TlsLaw(name) Test(tls, name, .init = tls_up, .fini = server_down)

/* A file of the server's directory. One text for each of four calls in a row. */
static const char *file_of(const char *name)
{
    static char path[4][160];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", redis_server_dir(server), name);
    return path[next];
}

static const char *url_of_port(const char *scheme, const char *host)
{
    static char url[96];
    snprintf(url, sizeof url, "%s://%s:%d", scheme, host, redis_server_port(server));
    return url;
}

/* The server shows another certificate to new connections: one for these hosts, by this issuer. */
static void show_certificate(const struct certificate *certificate)
{
    certificate_make(redis_server_dir(server), certificate);
    redis_do(server, "CONFIG SET tls-cert-file %s/%s.pem tls-key-file %s/%s.key",
             redis_server_dir(server), certificate->name, redis_server_dir(server),
             certificate->name);
}

/* Options with the server's authority, and these fields. */
#define KNOWN(...) CLIENT(.tls_ca_file = redis_server_authority(), __VA_ARGS__)

/* The open fails with this code, and its text has these parts. */
static void expect_no_open(const char *url, const hl_client_options *options, int code,
                           const char *part, const char *other)
{
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;
    int rc = hl_client_open(url, options, &client, &err);
    check_msg(rc == code, "%s: %s", hl_err_name(rc), err.text);
    check_msg(strstr(err.text, part) != NULL, "not '%s' but '%s'", part, err.text);
    check_msg(strstr(err.text, other) != NULL, "not '%s' but '%s'", other, err.text);
}

static void lock_once(hl_client *client)
{
    hl_lock *lock = new_lock(client, "stock");
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_held_by(client, lock, 1);
    expect_ok(hl_lock_release(lock, ERR));
}

static struct tls_relay *new_relay(enum tls_relay_manner manner, char url[64])
{
    struct tls_relay *relay = tls_relay_start(server, redis_server_dir(server), manner);
    free_at_end(relay, tls_relay_stop);
    snprintf(url, 64, "rediss://127.0.0.1:%d", tls_relay_port(relay));
    return relay;
}

TlsLaw(locks_at_a_server_whose_name_or_address_is_in_the_certificate)
{
    lock_once(open_client_at(url_of_port("rediss", "127.0.0.1"), KNOWN()));
    lock_once(open_client_at(url_of_port("rediss", "localhost"), KNOWN()));
    lock_once(open_client_at(url_of_port("valkeys", "localhost"), KNOWN()));
}

/* A file that is there already is overwritten. */
static void put_authority_into(const char *folder)
{
    char command[512];
    snprintf(command, sizeof command, "mkdir -p %s && cp %s %s && openssl rehash %s", folder,
             redis_server_authority(), folder, folder);
    check_int(system(command), 0);
}

static hl_client *open_by_folder(const char *folder)
{
    return open_client_at(url_of_port("rediss", "127.0.0.1"),
                          CLIENT(.tls_ca_dir = folder, .outage_timeout_ms = slow_ms(60000)));
}

TlsLaw(finds_the_authority_in_a_folder_of_hashed_names)
{
    put_authority_into(file_of("cas"));
    lock_once(open_by_folder(file_of("cas")));
}

TlsLaw(finds_the_authority_in_one_of_several_folders)
{
    char folders[512];
    put_authority_into(file_of("cas"));
    snprintf(folders, sizeof folders, "%s:%s", file_of("none"), file_of("cas"));
    lock_once(open_by_folder(folders));
}

/* The bundle of a system has 140. */
TlsLaw(decodes_the_authority_alone_that_it_needs)
{
    char command[700], name[16];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "other%d", i);
        certificate_make(redis_server_dir(server), &(struct certificate){.name = name});
    }
    snprintf(command, sizeof command, "cat %s/other*.key %s/other*.pem %s >%s",
             redis_server_dir(server), redis_server_dir(server), redis_server_authority(),
             file_of("bundle"));
    check_int(system(command), 0);
    lock_once(open_client_at(url_of_port("rediss", "127.0.0.1"),
                             CLIENT(.tls_ca_file = file_of("bundle"))));
    check_int(atomic_load(&decoded), 1);
}

TlsLaw(speaks_version_1_2_with_a_server_that_knows_no_later_one)
{
    redis_do(server, "CONFIG SET tls-protocols TLSv1.2");
    lock_once(open_client_at(url_of_port("rediss", "127.0.0.1"), KNOWN()));
}

TlsLaw(says_that_the_server_knows_no_version_that_is_new_enough)
{
    static const enum tls_relay_manner manner[] = {TLS_RELAY_OLD, TLS_RELAY_OLDER};
    for (size_t i = 0; i < sizeof manner / sizeof *manner; i++) {
        char url[64];
        new_relay(manner[i], url);
        expect_no_open(url, KNOWN(), HL_ECONN, "TLS: the server knows neither version 1.2 nor 1.3",
                       "127.0.0.1");
    }
}

TlsLaw(refuses_a_certificate_that_has_expired_and_says_when)
{
    show_certificate(&(struct certificate){
        .name = "old", .issuer = "ca", .hosts = "IP:127.0.0.1", .ends_in_seconds = -60});
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(), HL_ECONN,
                   "the server's certificate has expired (on 20", "renew it");
}

TlsLaw(refuses_a_certificate_that_is_not_valid_yet)
{
    show_certificate(&(struct certificate){
        .name = "new", .issuer = "ca", .hosts = "IP:127.0.0.1", .begins_in_days = 10});
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(), HL_ECONN, "is valid from 20",
                   "compare the clocks");
}

TlsLaw(refuses_a_certificate_of_an_unknown_authority_and_says_whose_it_is)
{
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "stranger"});
    show_certificate(
        &(struct certificate){.name = "own", .issuer = "stranger", .hosts = "IP:127.0.0.1"});
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(), HL_ECONN, "CN=stranger",
                   "set tls_ca_file");
}

TlsLaw(asks_the_authorities_of_the_system_when_no_other_is_named)
{
    expect_no_open(url_of_port("rediss", "127.0.0.1"), NULL, HL_ECONN, "CN=ca", "set tls_ca_file");
}

TlsLaw(refuses_a_certificate_for_another_host_and_names_both)
{
    show_certificate(&(struct certificate){
        .name = "other", .issuer = "ca", .hosts = "DNS:redis.example,IP:10.0.0.3,IP:2001:db8::7"});
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(), HL_ECONN,
                   "is for redis.example, 10.0.0.3, 2001:db8:0:0:0:0:0:7", "not for 127.0.0.1");
    expect_no_open(url_of_port("rediss", "localhost"), KNOWN(), HL_ECONN, "redis.example",
                   "not for localhost");
    lock_once(open_client_at(url_of_port("rediss", "127.0.0.1"),
                             KNOWN(.tls_server_name = "redis.example")));
}

/* As from a variable of the environment that is set to nothing. */
TlsLaw(refuses_a_server_name_that_is_none)
{
    static char longer[257];

    memset(longer, 'a', sizeof longer - 1);
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(.tls_server_name = ""), HL_EINVAL,
                   "tls_server_name has 0 bytes", "from 1 to 255");
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(.tls_server_name = longer), HL_EINVAL,
                   "tls_server_name has 256 bytes", "from 1 to 255");
    expect_no_open("rediss-sentinel://127.0.0.1/m", KNOWN(.sentinel_tls_server_name = ""),
                   HL_EINVAL, "sentinel_tls_server_name has 0 bytes", "from 1 to 255");
}

TlsLaw(verifies_nothing_only_when_it_is_asked_to_and_warns_then)
{
    static struct recorder told = RECORDER_INIT;
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "stranger"});
    show_certificate(&(struct certificate){.name = "own", .issuer = "stranger", .hosts = "DNS:x"});
    lock_once(open_client_at(
        url_of_port("rediss", "127.0.0.1"),
        CLIENT(.flags = HL_CLIENT_TLS_UNVERIFIED, .on_log = record_log, .arg = &told)));
    check(recorder_wait_says(&told, "certificate is not verified"));
}

TlsLaw(shows_its_own_certificate_to_a_server_that_asks_for_one)
{
    certificate_make(redis_server_dir(server),
                     &(struct certificate){.name = "client", .issuer = "ca"});
    redis_do(server, "CONFIG SET tls-auth-clients yes");
    lock_once(open_client_at(
        url_of_port("rediss", "127.0.0.1"),
        KNOWN(.tls_cert_file = file_of("client.pem"), .tls_key_file = file_of("client.key"))));
}

TlsLaw(says_that_the_server_wants_a_certificate_of_the_client)
{
    redis_do(server, "CONFIG SET tls-auth-clients yes");
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(), HL_ECONN,
                   "the server wants a certificate of the client", "set tls_cert_file");
    redis_do(server, "CONFIG SET tls-protocols TLSv1.2");
    expect_no_open(url_of_port("rediss", "127.0.0.1"), KNOWN(), HL_ECONN,
                   "the server wants a certificate of the client", "set tls_cert_file");
}

TlsLaw(says_that_the_server_refuses_the_certificate_of_the_client)
{
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "stranger"});
    certificate_make(redis_server_dir(server),
                     &(struct certificate){.name = "client", .issuer = "stranger"});
    redis_do(server, "CONFIG SET tls-auth-clients yes");
    expect_no_open(
        url_of_port("rediss", "127.0.0.1"),
        KNOWN(.tls_cert_file = file_of("client.pem"), .tls_key_file = file_of("client.key")),
        HL_ECONN, "refuses the certificate in tls_cert_file", "ca");
}

TcpLaw(tls, says_that_the_server_does_not_speak_it)
{
    if (redis_server_has_tls(server))
        return;
    expect_no_open(url_of_port("rediss", "127.0.0.1"), NULL, HL_ECONN, "connect 127.0.0.1",
                   "does the server speak TLS at this port?");
}

TlsLaw(is_proposed_when_a_server_that_wants_it_is_met_without)
{
    expect_no_open(url_of_port("redis", "127.0.0.1"), NULL, HL_ECONN, "if it speaks TLS",
                   "rediss://");
}

TlsLaw(checks_its_files_at_the_open)
{
    const char *url = url_of_port("rediss", "127.0.0.1");
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "a", .issuer = "ca"});
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "b", .issuer = "ca"});
    expect_no_open(url, CLIENT(.tls_ca_file = "/nowhere.pem"), HL_EINVAL,
                   "tls_ca_file '/nowhere.pem'", "no such file");
    expect_no_open(url, CLIENT(.tls_ca_file = file_of("redis.conf")), HL_EINVAL, "tls_ca_file",
                   "redis.conf");
    FILE *broken = fopen(file_of("broken.pem"), "we");
    check(broken &&
          fputs("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", broken) >= 0 &&
          fclose(broken) == 0);
    expect_no_open(url, CLIENT(.tls_ca_file = file_of("broken.pem")), HL_EINVAL, "tls_ca_file",
                   "broken.pem': decode error");
    expect_no_open(url, KNOWN(.tls_cert_file = file_of("a.pem")), HL_EINVAL, "tls_cert_file is set",
                   "without tls_key_file");
    expect_no_open(url, KNOWN(.tls_cert_file = "/nowhere.pem", .tls_key_file = file_of("a.key")),
                   HL_EINVAL, "tls_cert_file '/nowhere.pem'", "no such file");
    expect_no_open(url, KNOWN(.tls_cert_file = file_of("a.pem"), .tls_key_file = file_of("b.key")),
                   HL_EINVAL, "b.key", "it is not the key of the certificate");
    expect_no_open(url,
                   KNOWN(.tls_cert_file = file_of("a.pem"), .tls_key_file = file_of("redis.conf")),
                   HL_EINVAL, "tls_key_file", "redis.conf");
    char command[400];
    snprintf(command, sizeof command, "openssl ec -aes128 -passout pass:x -in %s -out %s 2>&1",
             file_of("a.key"), file_of("c.key"));
    check_int(system(command), 0);
    expect_no_open(url, KNOWN(.tls_cert_file = file_of("a.pem"), .tls_key_file = file_of("c.key")),
                   HL_EINVAL, "c.key", "the key is encrypted");
}

Law(tls, options_need_a_url_that_asks_for_it)
{
    expect_no_open("redis://127.0.0.1", CLIENT(.tls_ca_file = "/x"), HL_EINVAL, "rediss://",
                   "tls_ca_file");
    expect_no_open("redis://127.0.0.1", CLIENT(.flags = HL_CLIENT_TLS_UNVERIFIED), HL_EINVAL,
                   "rediss://", "tls_unverified");
    expect_no_open("redis-sentinel://127.0.0.1/m", CLIENT(.sentinel_tls_server_name = "x"),
                   HL_EINVAL, "rediss://", "sentinel_tls_server_name");
    expect_no_open("rediss://127.0.0.1", CLIENT(.sentinel_tls_server_name = "x"), HL_EINVAL,
                   "sentinel_tls_server_name", "redis-sentinel://");
}

Law(tls, handshake_that_hangs_ends_with_the_connect_timeout)
{
    char url[64], within[64];
    int port = 0, fd = listener_open_tcp(&port);
    int64_t timeout_ms = slow_ms(1000); /* the connection is up by then, on a busy machine too */
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", port);
    snprintf(within, sizeof within, "within %lld ms", (long long)timeout_ms);
    expect_no_open(url,
                   CLIENT(.connect_timeout_ms = timeout_ms, .outage_timeout_ms = 10 * timeout_ms),
                   HL_ECONN, "no answer to the TLS", within);
    close(fd);
}

static void drop_clients(hl_client *client, int connects)
{
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    wait_stat(client, reconnects, connects);
}

TlsLaw(files_that_stay_the_same_are_read_once)
{
    int before = atomic_load(&contexts);
    hl_client *client = open_client_at(url_of_port("rediss", "127.0.0.1"), KNOWN());
    for (int i = 1; i <= 3; i++) {
        drop_clients(client, i);
        lock_once(client);
    }
    check_int(atomic_load(&contexts) - before, 1);
}

/* It has the same name, the same size and the same time, as after a restore from a backup. */
TlsLaw(file_that_another_has_replaced_is_read)
{
    char command[700];
    snprintf(command, sizeof command, "cp %s %s", redis_server_authority(), file_of("copy.pem"));
    check_int(system(command), 0);
    hl_client *client = open_client_at(url_of_port("rediss", "127.0.0.1"),
                                       CLIENT(.tls_ca_file = file_of("copy.pem")));
    int before = atomic_load(&contexts);
    snprintf(command, sizeof command, "cp -p %s %s && mv %s %s", file_of("copy.pem"),
             file_of("next.pem"), file_of("next.pem"), file_of("copy.pem"));
    check_int(system(command), 0);
    drop_clients(client, 1);
    lock_once(client);
    check_int(atomic_load(&contexts) - before, 1);
}

TlsLaw(files_are_read_anew_when_they_have_changed)
{
    certificate_make(redis_server_dir(server),
                     &(struct certificate){.name = "client", .issuer = "ca"});
    redis_do(server, "CONFIG SET tls-auth-clients yes");
    hl_client *client = open_client_at(
        url_of_port("rediss", "127.0.0.1"),
        KNOWN(.tls_cert_file = file_of("client.pem"), .tls_key_file = file_of("client.key")));
    lock_once(client);
    /* Everything is new: the authority, the server's certificate, the client's. */
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "ca"});
    certificate_make(redis_server_dir(server),
                     &(struct certificate){.name = "client", .issuer = "ca"});
    redis_do(server, "CONFIG SET tls-ca-cert-file %s", redis_server_authority());
    show_certificate(
        &(struct certificate){.name = "server", .issuer = "ca", .hosts = "IP:127.0.0.1"});
    drop_clients(client, 1);
    lock_once(client);
}

static void replace_authority(void)
{
    certificate_make(redis_server_dir(server), &(struct certificate){.name = "ca"});
    show_certificate(
        &(struct certificate){.name = "server", .issuer = "ca", .hosts = "IP:127.0.0.1"});
}

/* The folder itself does not change by that. */
TlsLaw(file_of_a_folder_that_is_overwritten_is_read_anew)
{
    put_authority_into(file_of("cas"));
    hl_client *client = open_by_folder(file_of("cas"));
    char command[512];
    replace_authority();
    snprintf(command, sizeof command, "cat %s >%s", redis_server_authority(),
             file_of("cas/ca.pem"));
    check_int(system(command), 0);
    drop_clients(client, 1);
    lock_once(client);
}

TlsLaw(authority_that_comes_into_a_folder_is_found)
{
    static struct recorder lines = RECORDER_INIT;
    hl_client *client =
        open_client_at(url_of_port("rediss", "127.0.0.1"),
                       CLIENT(.tls_ca_dir = file_of("later"), .flags = HL_CLIENT_LAZY,
                              .on_log = record_log, .log_level = HL_LOG_DEBUG, .arg = &lines));
    check(recorder_wait_says(&lines, "no known authority"));
    put_authority_into(file_of("later"));
    expect_ok(hl_client_ping(client, slow_ms(60000), ERR));
    lock_once(client);
}

TlsLaw(file_that_is_missing_at_a_reconnect_is_named_until_it_is_back)
{
    char command[512];
    snprintf(command, sizeof command, "cp %s %s", redis_server_authority(), file_of("copy.pem"));
    check_int(system(command), 0);
    hl_client *client = open_client_at(
        url_of_port("rediss", "127.0.0.1"),
        CLIENT(.tls_ca_file = file_of("copy.pem"), .outage_timeout_ms = slow_ms(1000)));
    lock_once(client);
    check_int(unlink(file_of("copy.pem")), 0);
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(new_lock(client, "stock"), &err), HL_ECONN);
    check_has(err.text, "tls_ca_file");
    check_has(err.text, "copy.pem': no such file");
    check_int(system(command), 0);
    wait_stat(client, reconnects, 1);
    lock_once(client);
}

/* What it was is not trusted any more, though it is known. */
TlsLaw(file_that_is_broken_at_a_reconnect_is_named_until_it_is_whole)
{
    char command[512];
    snprintf(command, sizeof command, "cp %s %s", redis_server_authority(), file_of("copy.pem"));
    check_int(system(command), 0);
    hl_client *client = open_client_at(
        url_of_port("rediss", "127.0.0.1"),
        CLIENT(.tls_ca_file = file_of("copy.pem"), .outage_timeout_ms = slow_ms(1000)));
    lock_once(client);
    FILE *broken = fopen(file_of("copy.pem"), "we");
    check(broken && fputs("half a certificate", broken) >= 0 && fclose(broken) == 0);
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(new_lock(client, "stock"), &err), HL_ECONN);
    check_has(err.text, "tls_ca_file");
    check_has(err.text, "copy.pem'");
    check_int(system(command), 0);
    wait_stat(client, reconnects, 1);
    lock_once(client);
}

/* A certificate says with whom a connection is made, and not for how long it may last. */
TlsLaw(certificate_that_expires_is_noticed_at_the_next_connect)
{
    show_certificate(&(struct certificate){.name = "brief",
                                           .issuer = "ca",
                                           .hosts = "IP:127.0.0.1",
                                           .ends_in_seconds = (int)slow_ms(3000) / 1000});
    hl_client *client =
        open_client_at(url_of_port("rediss", "127.0.0.1"), KNOWN(.outage_timeout_ms = 1000));
    hl_lock *lock = new_lock(client, "stock");
    struct deadline expiry = deadline_in(4500);
    while (!deadline_is_over(expiry))
        deadline_nap();
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_release(lock, ERR));
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(lock, &err), HL_ECONN);
    check_msg(strstr(err.text, "has expired (on 20") != NULL, "%s", err.text);
    show_certificate(
        &(struct certificate){.name = "longer", .issuer = "ca", .hosts = "IP:127.0.0.1"});
    wait_stat(client, reconnects, 1);
    expect_ok(hl_lock_acquire(lock, ERR));
}

TlsLaw(carries_values_that_are_larger_than_a_record)
{
    enum { SIZE = 900 * 1000 };
    static char value[SIZE];
    hl_client *client = open_client_at(url_of_port("rediss", "127.0.0.1"), KNOWN());
    hl_lock *lock = new_lock(client, "stock");
    memset(value, 'v', SIZE);
    expect_ok(hl_lock_acquire(lock, ERR));
    expect_ok(hl_lock_set_and_release(
        lock, NULL,
        &(hl_fenced_write){
            .size = sizeof(hl_fenced_write), .key = "big", .value = value, .value_length = SIZE},
        ERR));
    check_int(redis_int(server, "STRLEN big"), SIZE);
}

TlsLaw(client_closes_in_the_middle_of_a_handshake)
{
    char url[64];
    int port = 0, fd = listener_open_tcp(&port);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", port);
    for (int i = 0; i < 20; i++) {
        hl_client *client = NULL;
        expect_ok(hl_client_open(url, KNOWN(.flags = HL_CLIENT_LAZY), &client, ERR));
        if (i % 2) {
            int peer = -1;
            struct deadline deadline = deadline_in(10000);
            while ((peer = accept(fd, NULL, NULL)) < 0 && !deadline_is_over(deadline))
                deadline_nap();
            check(peer >= 0);
            expect_ok(hl_client_close(client));
            close(peer);
        } else {
            expect_ok(hl_client_close(client));
        }
    }
    close(fd);
}

static void expect_wanted(const char *host, const char *server_name, const char *wanted)
{
    char url[64];
    struct tls_relay *relay = new_relay(TLS_RELAY_HONEST, url);
    snprintf(url, sizeof url, "rediss://%s:%d", host, tls_relay_port(relay));
    lock_once(open_client_at(url, KNOWN(.tls_server_name = server_name)));
    check(tls_relay_connections(relay) >= 2);
    for (int i = 0; i < tls_relay_connections(relay); i++)
        check_str(tls_relay_wanted_host(relay, i), wanted);
}

/* A server with certificates for several hosts chooses by it (SNI). */
TlsLaw(tells_the_server_which_host_it_wants_unless_it_knows_an_address_only)
{
    certificate_make(redis_server_dir(server),
                     &(struct certificate){.name = "server",
                                           .issuer = "ca",
                                           .hosts = "DNS:localhost,DNS:redis.example,IP:127.0.0.1,"
                                                    "IP:10.0.0.3"});
    expect_wanted("localhost", NULL, "localhost");
    expect_wanted("localhost", "redis.example", "redis.example");
    expect_wanted("127.0.0.1", "redis.example", "redis.example");
    expect_wanted("127.0.0.1", NULL, "");
    expect_wanted("localhost", "10.0.0.3", "");
}

/* The dot keeps the resolver from its search list; it is no part of a name in TLS (RFC 6066). */
TlsLaw(host_with_a_dot_at_its_end_is_the_host_without_it)
{
    certificate_make(
        redis_server_dir(server),
        &(struct certificate){.name = "server", .issuer = "ca", .hosts = "DNS:dotted.test"});
    expect_wanted("dotted.test.", NULL, "dotted.test");
    check_str(asked_host, "dotted.test.");
    expect_wanted("127.0.0.1", "dotted.test.", "dotted.test");
}

/* A peer may ask for new keys at any time; the answer goes out between two requests. */
TlsLaw(new_keys_are_answered_while_requests_go_on)
{
    char url[64];
    struct tls_relay *relay = new_relay(TLS_RELAY_NEW_KEYS, url);
    hl_client *client = open_client_at(url, KNOWN());
    for (int i = 0; i < 100; i++)
        lock_once(client);
    check(tls_relay_new_keys(relay) >= 100);
    check_int(tls_relay_connections(relay), 2);
    check_int((int)stats_of(client).reconnects, 0);
}

/* The server ends such a connection. */
TlsLaw(renegotiation_is_declined)
{
    char url[64];
    struct tls_relay *relay = new_relay(TLS_RELAY_RENEGOTIATES, url);
    hl_client *client = open_client_at(
        url, KNOWN(.flags = HL_CLIENT_LAZY, .outage_timeout_ms = 1000, .backoff_min_ms = 200));
    hl_error err = HL_ERROR_INIT;
    expect_outcome(hl_lock_acquire(new_lock(client, "stock"), &err), HL_ECONN);
    check_msg(strstr(err.text, "certificate") == NULL, "%s", err.text);
    check(tls_relay_asked(relay) >= 1);
    close_client(client);
    check(tls_relay_hellos(relay) <= tls_relay_connections(relay)); /* the last may be cut short */
}

/* Its answers come as fast as it writes them, each as a record of its own. */
TlsLaw(reads_all_records_that_came_together)
{
    static struct recorder told = RECORDER_INIT;
    enum { CALLS = 200 };
    hl_client *client = open_client_at(url_of_port("rediss", "127.0.0.1"), KNOWN());
    redis_server_freeze(server);
    for (int i = 0; i < CALLS; i++)
        expect_ok(hl_client_ping_async(client, -1, record_done, &told));
    redis_server_thaw(server);
    check(recorder_wait(&told, CALLS));
    for (int i = 0; i < CALLS; i++)
        check_int(recorder_entry(&told, i).code, HL_OK);
    check_int((int)stats_of(client).reconnects, 0);
}

/* The connection stands, and nothing more will come that could be understood. */
TlsLaw(record_that_cannot_be_decrypted_ends_the_connection_at_once)
{
    char url[64];
    new_relay(TLS_RELAY_JUNK, url);
    expect_no_open(url, KNOWN(.connect_timeout_ms = 600000, .request_timeout_ms = 600000), HL_ECONN,
                   "TLS: ", "127.0.0.1");
    lock_once(open_client_at(url, KNOWN()));
}

static bool is_watched(void *sentinel)
{
    return strstr(redis_str(sentinel, "CLIENT LIST TYPE pubsub"), "name=hirelock") != NULL;
}

/* The sentinel shows the server's certificate; its own, which it was started with, is unknown. */
TlsLaw(reaches_sentinels_and_the_master_that_they_name)
{
    char url[96], config[600];
    const char *authority = file_of("ca.pem");
    snprintf(config, sizeof config,
             "tls-replication yes\ntls-ca-cert-file %s\ntls-cert-file %s\ntls-key-file %s\n"
             "sentinel monitor mymaster 127.0.0.1 %d 1",
             authority, file_of("server.pem"), file_of("server.key"), redis_server_port(server));
    struct redis_server *sentinel = redis_server_start(
        &(struct redis_options){.tls = true, .sentinel = true, .config = config});
    stop_at_end(sentinel, (void (*)(void *))redis_server_stop);
    snprintf(url, sizeof url, "rediss-sentinel://127.0.0.1:%d/mymaster",
             redis_server_port(sentinel));
    expect_no_open(url, CLIENT(.tls_ca_file = redis_server_authority()), HL_ECONN,
                   "sentinel 127.0.0.1", "TLS: the server's certificate");
    hl_client *client = open_client_at(url, CLIENT(.tls_ca_file = authority));
    lock_once(client);
    check(wait_until(is_watched, sentinel, 10000));
}
