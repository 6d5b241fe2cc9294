/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* URLs: what is accepted, what is refused and why, and that no secret shows. */

#include "redis/url.h"

#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct good {
    const char *text;
    enum hli_url_kind kind;
    const char *host;
    int port, database;
    const char *username, *password;
} good[] = {
    {"redis://localhost", HLI_URL_SERVER, "localhost", 6379, 0, NULL, NULL},
    {"redis://127.0.0.1:7000", HLI_URL_SERVER, "127.0.0.1", 7000, 0, NULL, NULL},
    {"redis://h:1", HLI_URL_SERVER, "h", 1, 0, NULL, NULL},
    {"redis://h:65535/", HLI_URL_SERVER, "h", 65535, 0, NULL, NULL},
    {"redis://h/0", HLI_URL_SERVER, "h", 6379, 0, NULL, NULL},
    {"redis://h/15", HLI_URL_SERVER, "h", 6379, 15, NULL, NULL},
    {"redis://[::1]", HLI_URL_SERVER, "::1", 6379, 0, NULL, NULL},
    {"redis://[fe80::1]:7000/2", HLI_URL_SERVER, "fe80::1", 7000, 2, NULL, NULL},
    {"redis://[fe80::1%25eth0]", HLI_URL_SERVER, "fe80::1%eth0", 6379, 0, NULL, NULL},
    {"REDIS://h", HLI_URL_SERVER, "h", 6379, 0, NULL, NULL},
    {"valkey://u:pw@h:7/2", HLI_URL_SERVER, "h", 7, 2, "u", "pw"},
    {"redis://:@h", HLI_URL_SERVER, "h", 6379, 0, NULL, NULL},
    {"redis://u:@h", HLI_URL_SERVER, "h", 6379, 0, "u", ""},
    {"redis://:pw@h", HLI_URL_SERVER, "h", 6379, 0, NULL, "pw"},
    {"redis://user:pw@h:7000/3", HLI_URL_SERVER, "h", 7000, 3, "user", "pw"},
    {"redis://user@h", HLI_URL_SERVER, "h", 6379, 0, "user", NULL},
    {"redis://user:@h", HLI_URL_SERVER, "h", 6379, 0, "user", ""},
    {"redis://a%40b:p%3a%2F%25%40@h", HLI_URL_SERVER, "h", 6379, 0, "a@b", "p:/%@"},
    {"redis://u:p:w@h", HLI_URL_SERVER, "h", 6379, 0, "u", "p:w"},
    {"redis://u:%ff%01@h", HLI_URL_SERVER, "h", 6379, 0, "u", "\xff\x01"},
    {"redis://u:pw@[::1]:1/1", HLI_URL_SERVER, "::1", 1, 1, "u", "pw"},
    {"redis://my-host_1.example.com.", HLI_URL_SERVER, "my-host_1.example.com.", 6379, 0, NULL,
     NULL},
    {"rediss://h", HLI_URL_SERVER, "h", 6379, 0, NULL, NULL},
    {"Valkeys://u:pw@h:7/2", HLI_URL_SERVER, "h", 7, 2, "u", "pw"},
    {"unix:///run/redis.sock", HLI_URL_SERVER, "/run/redis.sock", 0, 0, NULL, NULL},
    {"unix:///a%20b?db=7", HLI_URL_SERVER, "/a b", 0, 7, NULL, NULL},
};

static const struct many {
    const char *text;
    enum hli_url_kind kind;
    const char *where, *service; /* where: all addresses, with spaces between them */
    int database;
    const char *username, *password;
} many[] = {
    {"redis-sentinel://h/mymaster", HLI_URL_SENTINEL, "h:26379", "mymaster", 0, NULL, NULL},
    {"redis-sentinel://a,b:1,[::1],[::2]:3/my%2Fmaster", HLI_URL_SENTINEL,
     "a:26379 b:1 [::1]:26379 [::2]:3", "my/master", 0, NULL, NULL},
    {"rediss-sentinel://u:p%2C@a,b/m?db=3", HLI_URL_SENTINEL, "a:26379 b:26379", "m", 3, "u", "p,"},
    {"Valkey-Sentinel://:pw@a/m", HLI_URL_SENTINEL, "a:26379", "m", 0, NULL, "pw"},
    {"redis-cluster://u:p@a,b:7", HLI_URL_CLUSTER, "a:6379 b:7", NULL, 0, "u", "p"},
    {"rediss-cluster://a/", HLI_URL_CLUSTER, "a:6379", NULL, 0, NULL, NULL},
    {"valkey-cluster://a,[::1]/0", HLI_URL_CLUSTER, "a:6379 [::1]:6379", NULL, 0, NULL, NULL},
    {"valkeys-sentinel://a/m", HLI_URL_SENTINEL, "a:26379", "m", 0, NULL, NULL},
};

static const struct bad {
    const char *text, *says;
    int code;
} bad[] = {
    {"", "none of", HL_EINVAL},
    {"localhost", "none of", HL_EINVAL},
    {"http://h", "none of", HL_EINVAL},
    {"redis:/h", "none of", HL_EINVAL},
    {"redis-sentinel://h", "master's name", HL_EINVAL},
    {"redis-sentinel://h/", "master's name", HL_EINVAL},
    {"redis-sentinel://h/?db=1", "master's name", HL_EINVAL},
    {"redis-sentinel://h/m?db=x", "database", HL_EINVAL},
    {"redis-sentinel://h/m?x", "name=value", HL_EINVAL},
    {"redis-sentinel://h/m%zz", "master's name", HL_EINVAL},
    {"redis-sentinel:///m", "no host", HL_EINVAL},
    {"redis-sentinel://a,,b/m", "no host", HL_EINVAL},
    {"redis-sentinel://a,b,/m", "no host", HL_EINVAL},
    {"redis-sentinel://a,b:x/m", "port", HL_EINVAL},
    {"redis-sentinel://a,::1/m", "brackets", HL_EINVAL},
    {"redis-sentinel://a,b?db=1/m", "database", HL_EINVAL},
    {"redis-sentinel://a,b/m?db=1&db=1", "twice", HL_EINVAL},
    {"redis-sentinel://:TopSecret@a,b%zz/m", "host", HL_EINVAL},
    {"redis-sentinel://:Top/Secret@a,b/m", "%2F", HL_EINVAL},
    {"redis://a,b", "redis-sentinel://", HL_EINVAL},
    {"redis-cluster://h/1", "only the database 0", HL_EINVAL},
    {"redis-cluster://a,b/x", "database", HL_EINVAL},
    {"redis-cluster://", "no host", HL_EINVAL},
    {"redis-masters://h", "redis-masters://", HL_ENOTSUP},
    {"redis://", "no host", HL_EINVAL},
    {"redis:///1", "no host", HL_EINVAL},
    {"redis://:7000", "no host", HL_EINVAL},
    {"redis://[]", "no host", HL_EINVAL},
    {"redis://[::1", "bracket", HL_EINVAL},
    {"redis://[::1]7000", "bracket", HL_EINVAL},
    {"redis://::1", "brackets", HL_EINVAL},
    {"redis://::1:6379", "brackets", HL_EINVAL},
    {"redis://:p@ss@h", "%40", HL_EINVAL},
    {"redis://:p@ss@h:1", "%40", HL_EINVAL},
    {"rediss:///1", "no host", HL_EINVAL},
    {"redis://h:6379?db=1", "/1", HL_EINVAL},
    {"redis://h/99999999", "from 0 to", HL_EINVAL},
    {"redis://h:", "port", HL_EINVAL},
    {"redis://h:0", "port", HL_EINVAL},
    {"redis://h:65536", "port", HL_EINVAL},
    {"redis://h:-1", "port", HL_EINVAL},
    {"redis://h:7x", "port", HL_EINVAL},
    {"redis://h: 7", "port", HL_EINVAL},
    {"redis://h:99999999999999999999", "port", HL_EINVAL},
    {"redis://h/x", "database", HL_EINVAL},
    {"redis://h/-1", "database", HL_EINVAL},
    {"redis://h/1/2", "database", HL_EINVAL},
    {"redis://h/1000001", "database", HL_EINVAL},
    {"redis://h?db=1", "/1", HL_EINVAL},
    {"redis://h#x", "host", HL_EINVAL},
    {"redis://a b", "host", HL_EINVAL},
    {"redis://h%0a", "host", HL_EINVAL},
    {"redis://h%", "host", HL_EINVAL},
    {"redis://h%4", "host", HL_EINVAL},
    {"redis://h%zz", "host", HL_EINVAL},
    {"redis://h%00", "host", HL_EINVAL},
    {"redis://:TopSecret%zz@h", "percent", HL_EINVAL},
    {"redis://:TopSecret%00@h", "percent", HL_EINVAL},
    {"redis://u%:TopSecret@h", "percent", HL_EINVAL},
    {"redis://:TopSecret@h:x", "port", HL_EINVAL},
    {"redis://:TopSecret@", "no host", HL_EINVAL},
    {"redis://:Top@Secret@h", "%40", HL_EINVAL},
    {"redis://:Top/Secret@h", "%2F", HL_EINVAL},
    {"redis://u:Top/Secret@h", "%2F", HL_EINVAL},
    {"unix://run/redis.sock", "absolute", HL_EINVAL},
    {"unix://", "absolute", HL_EINVAL},
    {"unix:///s?db=", "database", HL_EINVAL},
    {"unix:///s?db=x", "database", HL_EINVAL},
    {"unix:///s?TopSecret", "name=value", HL_EINVAL},
    {"unix:///s?=TopSecret", "name=value", HL_EINVAL},
    {"unix:///s?db=1&&x=TopSecret", "name=value", HL_EINVAL},
    {"redis-cluster://h?db=0", "?db=", HL_EINVAL},
    {"redis://h/1?x=1&db=1", "/1", HL_EINVAL},
    {"redis://:Top?Secret@h", "%3F", HL_EINVAL},
    {"redis://u:Top?Secret=Secret@h/1", "%3F", HL_EINVAL},
    {"unix:///s%", "path", HL_EINVAL},
};

Test(url, reads_what_is_valid)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct hli_url url;
        hl_error err = HL_ERROR_INIT;
        int rc = hli_url_parse(good[i].text, &url, &err);
        check_msg(rc == 0, "%s: %s", good[i].text, err.text);
        check_int(url.kind, good[i].kind);
        check(url.has_tls == (strncasecmp(good[i].text, "rediss:", 7) == 0 ||
                              strncasecmp(good[i].text, "valkeys:", 8) == 0));
        check_str(url.addresses[0].host, good[i].host);
        check_int(url.addresses[0].port, good[i].port);
        check_int(url.database, good[i].database);
        check_str(url.login.username, good[i].username);
        check_str(url.login.password, good[i].password);
        hli_url_deinit(&url);
    }
}

static const char *where_of_all(const struct hli_url *url)
{
    static char text[1024];
    char where[HLI_WHERE_SIZE];

    text[0] = '\0';
    for (size_t i = 0; i < url->address_count; i++) {
        hli_address_where(&url->addresses[i], where);
        strcat(text, i > 0 ? " " : "");
        strcat(text, where);
    }
    return text;
}

/* Addresses in words are compared: those of one host differ by their ports. */
Test(url, names_the_longest_host_with_its_port)
{
    char host[256], where[HLI_WHERE_SIZE];
    struct hli_address address;

    memset(host, 'h', 255);
    host[255] = '\0';
    check_int(hli_address_init(&address, host, 65535), 0);
    hli_address_where(&address, where);
    check_int(strlen(where), 255 + strlen(":65535"));
    check_str(where + 255, ":65535");
    hli_address_deinit(&address);
}

Test(url, reads_several_addresses)
{
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
        struct hli_url url;
        hl_error err = HL_ERROR_INIT;
        int rc = hli_url_parse(many[i].text, &url, &err);
        check_msg(rc == 0, "%s: %s", many[i].text, err.text);
        check_int(url.kind, many[i].kind);
        check(url.has_tls == (strncasecmp(many[i].text, "rediss-", 7) == 0 ||
                              strncasecmp(many[i].text, "valkeys-", 8) == 0));
        check_str(where_of_all(&url), many[i].where);
        check_str(url.service, many[i].service);
        check_int(url.database, many[i].database);
        check_str(url.login.username, many[i].username);
        check_str(url.login.password, many[i].password);
        hli_url_deinit(&url);
    }
}

Test(url, refuses_what_is_not_and_says_why)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hli_url url;
        hl_error err = HL_ERROR_INIT;
        int rc = hli_url_parse(bad[i].text, &url, &err);
        check_msg(rc == bad[i].code, "%s: %s", bad[i].text, hl_err_name(rc));
        check_int(err.code, bad[i].code);
        check_msg(strstr(err.text, bad[i].says) != NULL, "%s: %s", bad[i].text, err.text);
    }
}

Test(url, never_shows_a_secret_in_what_it_says)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hli_url url;
        hl_error err = HL_ERROR_INIT;
        check(hli_url_parse(bad[i].text, &url, &err) < 0);
        check_msg(strstr(err.text, "Secret") == NULL, "%s", err.text);
    }
}

static char words[256];

static int note_word(const char *name, const char *value, void *arg, hl_error *err)
{
    (void)arg;
    (void)err;
    snprintf(words + strlen(words), sizeof words - strlen(words), "%s=%s ", name, value);
    return strcmp(name, "stop") == 0 ? HL_EINVAL : 0;
}

static int read_words(const char *text)
{
    struct hli_url url;
    hl_error err = HL_ERROR_INIT;

    words[0] = '\0';
    check_int(hli_url_parse(text, &url, &err), 0);
    int rc = hli_url_query(&url, note_word, NULL, &err);
    check(strstr(err.text, "Secret") == NULL);
    hli_url_deinit(&url);
    return rc;
}

Test(url, has_words_behind_a_question_mark)
{
    static const struct {
        const char *text, *words;
        int code;
    } all[] = {
        {"redis://h", "", 0},
        {"redis://h?", "", 0},
        {"redis://h?a=1", "a=1 ", 0},
        {"rediss://u:p@[::1]:7/3?a=1&b=", "a=1 b= ", 0},
        {"redis://h/?path=/a/b?c=d", "path=/a/b?c=d ", 0},
        {"unix:///s?a=1&db=7&b=x%26y%3dz%40", "a=1 b=x&y=z@ ", 0},
        {"redis-sentinel://a,b/m?db=2&a=1", "a=1 ", 0},
        {"redis-cluster://a,b?a=1+2", "a=1+2 ", 0},
        {"redis://h?stop=1&a=1", "stop=1 ", HL_EINVAL},
        {"redis://h?a=%zzTopSecret", "", HL_EINVAL},
        {"redis://h?a=%00TopSecret", "", HL_EINVAL},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int rc = read_words(all[i].text);
        check_msg(rc == all[i].code, "%s: %s", all[i].text, hl_err_name(rc));
        check_str(words, all[i].words);
    }
}

Test(url, never_takes_a_part_of_the_login_for_the_host)
{
    static const char *const texts[] = {"redis://:to@p@h", "redis://u:to@p@h:1", "redis://@@h"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hli_url url;
        check_int(hli_url_parse(texts[i], &url, NULL), HL_EINVAL);
    }
}
