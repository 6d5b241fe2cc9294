/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* URLs: what is accepted, what is refused and why, and that no secret shows. */

#include "redis/url.h"

#include "support/test.h"

#include <string.h>
#include <strings.h>

static const struct good {
    const char *text;
    enum hli_url_kind kind;
    const char *host;
    int port, database;
    const char *username, *password;
} good[] = {
    {"redis://localhost", HLI_URL_TCP, "localhost", 6379, 0, NULL, NULL},
    {"redis://127.0.0.1:7000", HLI_URL_TCP, "127.0.0.1", 7000, 0, NULL, NULL},
    {"redis://h:1", HLI_URL_TCP, "h", 1, 0, NULL, NULL},
    {"redis://h:65535/", HLI_URL_TCP, "h", 65535, 0, NULL, NULL},
    {"redis://h/0", HLI_URL_TCP, "h", 6379, 0, NULL, NULL},
    {"redis://h/15", HLI_URL_TCP, "h", 6379, 15, NULL, NULL},
    {"redis://[::1]", HLI_URL_TCP, "::1", 6379, 0, NULL, NULL},
    {"redis://[fe80::1]:7000/2", HLI_URL_TCP, "fe80::1", 7000, 2, NULL, NULL},
    {"redis://[fe80::1%25eth0]", HLI_URL_TCP, "fe80::1%eth0", 6379, 0, NULL, NULL},
    {"REDIS://h", HLI_URL_TCP, "h", 6379, 0, NULL, NULL},
    {"valkey://u:pw@h:7/2", HLI_URL_TCP, "h", 7, 2, "u", "pw"},
    {"redis://:@h", HLI_URL_TCP, "h", 6379, 0, NULL, NULL},
    {"redis://u:@h", HLI_URL_TCP, "h", 6379, 0, "u", ""},
    {"redis://:pw@h", HLI_URL_TCP, "h", 6379, 0, NULL, "pw"},
    {"redis://user:pw@h:7000/3", HLI_URL_TCP, "h", 7000, 3, "user", "pw"},
    {"redis://user@h", HLI_URL_TCP, "h", 6379, 0, "user", NULL},
    {"redis://user:@h", HLI_URL_TCP, "h", 6379, 0, "user", ""},
    {"redis://a%40b:p%3a%2F%25%40@h", HLI_URL_TCP, "h", 6379, 0, "a@b", "p:/%@"},
    {"redis://u:p:w@h", HLI_URL_TCP, "h", 6379, 0, "u", "p:w"},
    {"redis://u:%ff%01@h", HLI_URL_TCP, "h", 6379, 0, "u", "\xff\x01"},
    {"redis://u:pw@[::1]:1/1", HLI_URL_TCP, "::1", 1, 1, "u", "pw"},
    {"redis://my-host_1.example.com.", HLI_URL_TCP, "my-host_1.example.com.", 6379, 0, NULL, NULL},
    {"rediss://h", HLI_URL_TCP, "h", 6379, 0, NULL, NULL},
    {"Valkeys://u:pw@h:7/2", HLI_URL_TCP, "h", 7, 2, "u", "pw"},
    {"unix:///run/redis.sock", HLI_URL_UNIX, "/run/redis.sock", 0, 0, NULL, NULL},
    {"unix:///a%20b?db=7", HLI_URL_UNIX, "/a b", 0, 7, NULL, NULL},
};

static const struct bad {
    const char *text, *says;
    int code;
} bad[] = {
    {"", "none of", HL_EINVAL},
    {"localhost", "none of", HL_EINVAL},
    {"http://h", "none of", HL_EINVAL},
    {"redis:/h", "none of", HL_EINVAL},
    {"redis-sentinel://h", "redis-sentinel://", HL_ENOTSUP},
    {"redis-cluster://h", "redis-cluster://", HL_ENOTSUP},
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
    {"unix:///s?x=1", "db=n", HL_EINVAL},
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
        check_str(url.host, good[i].host);
        check_int(url.port, good[i].port);
        check_int(url.database, good[i].database);
        check_str(url.username, good[i].username);
        check_str(url.password, good[i].password);
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

Test(url, never_takes_a_part_of_the_login_for_the_host)
{
    static const char *const texts[] = {"redis://:to@p@h", "redis://u:to@p@h:1", "redis://@@h"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hli_url url;
        check_int(hli_url_parse(texts[i], &url, NULL), HL_EINVAL);
    }
}
