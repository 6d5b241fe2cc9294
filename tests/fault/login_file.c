/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Passwords in files, as Docker and Kubernetes mount them; and logins at Sentinels. */

#include "login_kit.h"

#include "support/topologies.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the directory of the servers, which goes with them. */
static const char *path_of(const char *name)
{
    static char path[4][300];
    static int next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", redis_server_dir(server), name);
    return path[next];
}

/* As Kubernetes does it: another file in its place. */
static const char *file_with(const char *name, const char *bytes, size_t length)
{
    const char *path = path_of(name), *fresh = path_of("fresh");
    FILE *file = fopen(fresh, "we");

    check(file);
    check_int(fwrite(bytes, 1, length, file), length);
    check_int(fclose(file), 0);
    check_int(rename(fresh, path), 0);
    return path;
}

static const char *file_of(const char *name, const char *text)
{
    return file_with(name, text, strlen(text));
}

#define BY_FILE(path, ...)                                                                         \
    CLIENT(.username = "app", .password_file = (path), .backoff_min_ms = 5, .backoff_max_ms = 50,  \
           .connect_timeout_ms = slow_ms(5000), .request_timeout_ms = patience_ms(5000),           \
           __VA_ARGS__)

LoginLaw(login_file, is_read_at_each_greeting)
{
    static struct events events;
    const char *path = file_of("password", ONE);
    hl_client *client = open_client(BY_FILE(path, .on_event = count_event, .arg = &events));

    check_int(login_count("app"), 2);
    redis_do(server, "ACL SETUSER app resetpass >rotated");
    file_of("password", "rotated\n");
    redis_kill_links(server, "hirelock");
    check(events_wait(&events, HL_EVENT_CONNECTED, 1, 20000));
    check_int(login_count("app"), 2);
    login_try_out(client);
}

LoginLaw(login_file, may_end_in_one_newline)
{
    login_try_out(open_client(BY_FILE(file_of("unix", ONE "\n"))));
    login_try_out(open_client(BY_FILE(file_of("dos", ONE "\r\n"))));
    expect_no_open(redis_server_url(server), BY_FILE(file_of("two", ONE "\n\n")), HL_EDENIED,
                   "WRONGPASS");
    redis_do(server, "ACL SETUSER app resetpass >%s", "pass\n");
    login_try_out(open_client(BY_FILE(file_of("newline", "pass\n\n"))));
}

LoginLaw(login_file, without_a_user_has_the_default_users_password)
{
    redis_do(server, "CONFIG SET requirepass pw");
    redis_do(server, "AUTH pw");
    login_try_out(open_client(CLIENT(.password_file = file_of("default", "pw"))));
    char url[96];
    snprintf(url, sizeof url, "redis://app@127.0.0.1:%d", redis_server_port(server));
    if (!redis_server_has_tls(server))
        login_try_out(open_client_at(url, CLIENT(.password_file = file_of("password", ONE))));
}

LoginLaw(login_file, that_cannot_be_used_is_named_at_the_open)
{
    static char longer[16400];
    const char *url = redis_server_url(server);

    expect_no_open(url, BY_FILE(path_of("none")), HL_EINVAL, "no such file or directory");
    expect_no_open(url, BY_FILE(path_of("none")), HL_EINVAL, "password_file '/");
    expect_no_open(url, BY_FILE(file_of("empty", "")), HL_EINVAL, "it is empty");
    expect_no_open(url, BY_FILE(file_of("line", "\n")), HL_EINVAL, "it is empty");
    expect_no_open(url, BY_FILE(file_with("nul", "a\0b", 3)), HL_EINVAL, "it has a NUL in it");
    expect_no_open(url, BY_FILE(redis_server_dir(server)), HL_EINVAL, "it is no regular file");
    check_int(mkfifo(path_of("pipe"), 0600), 0);
    expect_no_open(url, BY_FILE(path_of("pipe")), HL_EINVAL, "it is no regular file");
    memset(longer, 'x', 16385);
    expect_no_open(url, BY_FILE(file_of("long", longer)), HL_EINVAL, "longer than 16,384 bytes");
    memset(longer, 'x', sizeof longer - 1);
    expect_no_open(url, BY_FILE(file_of("longer", longer)), HL_EINVAL, "longer than 16,384 bytes");
    const char *closed = file_of("closed", ONE);
    check_int(chmod(closed, 0), 0);
    if (access(closed, R_OK) < 0) /* not for root */
        expect_no_open(url, BY_FILE(closed), HL_EINVAL, "permission denied");
}

LoginLaw(login_file, may_be_as_long_as_the_server_takes_a_password)
{
    static char limit[16387];

    memset(limit, 'x', 16384);
    redis_do(server, "ACL SETUSER app resetpass >%s", limit);
    login_try_out(open_client(BY_FILE(file_of("limit", limit))));
    strcat(limit, "\r\n");
    login_try_out(open_client(BY_FILE(file_of("limit", limit))));
}

LoginLaw(login_file, that_is_missing_at_a_reconnect_is_waited_for)
{
    static struct recorder story = RECORDER_INIT;
    const char *path = file_of("password", ONE);
    hl_client *client =
        open_client(BY_FILE(path, .on_log = record_log, .log_level = HL_LOG_DEBUG, .arg = &story));
    hl_error err = HL_ERROR_INIT;

    check_int(unlink(path), 0);
    redis_kill_links(server, "hirelock");
    check(recorder_wait_says(&story, "no such file or directory"));
    expect_outcome(hl_client_ping(client, 1, &err), HL_ECONN);
    check_has(err.text, "password_file '/");
    file_of("password", ONE);
    expect_ok(hl_client_ping(client, -1, ERR));
    check_int(login_count("app"), 2);
}

LoginLaw(login_file, excludes_another_login)
{
    static struct desk desk = DESK_INIT;
    const char *path = file_of("password", ONE), *url = redis_server_url(server);

    expect_no_open(url, BY_FILE(path, .password = ONE), HL_EINVAL, "give one");
    expect_no_open("redis://:pw@127.0.0.1", BY_FILE(path), HL_EINVAL, "give one");
    expect_no_open(url, LOGIN(&desk, .password_file = path), HL_EINVAL, "credentials_cb gives");
    expect_no_open(url, LOGIN(&desk, .password = ONE), HL_EINVAL, "credentials_cb gives");
    expect_no_open(url, LOGIN(&desk, .username = "app"), HL_EINVAL, "credentials_cb gives");
    expect_no_open("redis://app@127.0.0.1", LOGIN(&desk), HL_EINVAL, "credentials_cb gives");
    expect_no_open(url, CLIENT(.sentinel_password_file = path), HL_EINVAL,
                   "sentinel_password_file needs a URL with redis-sentinel://");
    expect_no_open("redis-sentinel://127.0.0.1/mymaster",
                   CLIENT(.sentinel_password_file = path, .sentinel_password = "pw"), HL_EINVAL,
                   "sentinel_password_file and sentinel_password");
    expect_no_open("redis-sentinel://127.0.0.1/mymaster",
                   CLIENT(.sentinel_password_file = path_of("none")), HL_EINVAL,
                   "sentinel_password_file '/");
    check_int(atomic_load(&desk.asked), 0);
}

static void passwords_up(void)
{
    trio_up_with(&(struct trio_options){.password = "data", .sentinel_password = "watch"});
}

#define SentinelLaw(name) Test(login_sentinel, name, .init = passwords_up, .fini = server_down)

static void fail_over(struct events *events)
{
    struct redis_server *old = trio_master(trio);
    int changes = events_told(events, HL_EVENT_MASTER_CHANGED);

    trio_start_failover(trio);
    server = trio_await_switch(trio, old);
    check(events_wait(events, HL_EVENT_MASTER_CHANGED, changes + 1, 60000));
}

SentinelLaw(by_files_is_read_anew_after_a_failover)
{
    static struct events events;
    const char *data = file_of("data", "data"), *watch = file_of("watch", "watch\n");
    hl_client *client = open_client_at(
        trio_url(trio),
        CLIENT(.password_file = data, .sentinel_password_file = watch,
               .outage_timeout_ms = slow_ms(60000), .on_event = count_event, .arg = &events));

    login_try_out(client);
    file_of("watch", "another");
    for (int i = 0; i < TRIO_SENTINELS; i++)
        redis_do(trio_sentinel(trio, i), "ACL SETUSER default resetpass >watch >another");
    fail_over(&events);
    login_try_out(client);
}

/* Gives the password of the purpose. */
static atomic_int asked[HL_CREDENTIALS_SENTINEL + 1];
static char addresses[HL_CREDENTIALS_SENTINEL + 1][64];
static atomic_bool sentinels_fail;
static int64_t sentinels_valid_ms;

static void answer_by_purpose(const hl_credentials_request *request, hl_credentials *credentials,
                              void *arg)
{
    bool is_sentinel = request->purpose == HL_CREDENTIALS_SENTINEL;

    (void)arg;
    snprintf(addresses[request->purpose], sizeof addresses[0], "%s", request->address);
    atomic_fetch_add(&asked[request->purpose], 1);
    if (is_sentinel && atomic_load(&sentinels_fail))
        hl_credentials_fail(credentials, "not for sentinels");
    else
        hl_credentials_set(credentials, NULL, is_sentinel ? "watch" : "data",
                           is_sentinel ? sentinels_valid_ms : 0);
}

static const hl_client_options *by_purpose(struct events *events)
{
    static hl_client_options used;

    used = *CLIENT(.credentials_cb = answer_by_purpose, .outage_timeout_ms = slow_ms(60000),
                   .backoff_max_ms = 200, .on_event = events ? count_event : NULL, .arg = events);
    return &used;
}

SentinelLaw(by_callback_is_asked_for_each_by_its_purpose)
{
    static struct events events;
    hl_client *client = open_client_at(trio_url(trio), by_purpose(&events));
    char where[64];

    login_try_out(client);
    check_int(atomic_load(&asked[HL_CREDENTIALS_SERVER]), 1);
    check_int(atomic_load(&asked[HL_CREDENTIALS_SENTINEL]), 1);
    snprintf(where, sizeof where, "127.0.0.1:%d", redis_server_port(server));
    check_str(addresses[HL_CREDENTIALS_SERVER], where);
    snprintf(where, sizeof where, "127.0.0.1:%d", redis_server_port(trio_sentinel(trio, 0)));
    check_str(addresses[HL_CREDENTIALS_SENTINEL], where);
    fail_over(&events);
    snprintf(where, sizeof where, "127.0.0.1:%d", redis_server_port(server));
    check_str(addresses[HL_CREDENTIALS_SERVER], where);
    login_try_out(client);
}

SentinelLaw(by_callback_fails_with_its_reason)
{
    hl_client_options used = *by_purpose(NULL);

    used.backoff_min_ms = used.backoff_max_ms = 60000; /* one attempt */
    atomic_store(&sentinels_fail, true);
    expect_no_open(trio_url(trio), &used, HL_ECONN,
                   "the credentials callback failed: not for sentinels");
    check_int(atomic_load(&asked[HL_CREDENTIALS_SENTINEL]), TRIO_SENTINELS); /* each once */
    check_int(atomic_load(&asked[HL_CREDENTIALS_SERVER]), 0);
}

SentinelLaw(by_password_leaves_the_callback_to_the_servers)
{
    hl_client_options used = *by_purpose(NULL);

    used.sentinel_password = "watch";
    login_try_out(open_client_at(trio_url(trio), &used));
    check_int(atomic_load(&asked[HL_CREDENTIALS_SENTINEL]), 0);
    check_int(atomic_load(&asked[HL_CREDENTIALS_SERVER]), 1);
}

static bool sentinel_was_asked_thrice(void *arg)
{
    (void)arg;
    return atomic_load(&asked[HL_CREDENTIALS_SENTINEL]) >= 3;
}

SentinelLaw(by_callback_that_ends_is_renewed_by_a_new_connection)
{
    static struct events events;

    sentinels_valid_ms = 1;
    hl_client *client = open_client_at(trio_url(trio), by_purpose(&events));
    check(wait_until(sentinel_was_asked_thrice, NULL, 20000));
    check_int(atomic_load(&asked[HL_CREDENTIALS_SERVER]), 1);
    fail_over(&events);
    login_try_out(client);
}

/* A callback that is slower than one sentinel's share of the time. */
static void answer_slowly(const hl_credentials_request *request, hl_credentials *credentials,
                          void *arg)
{
    struct deadline deadline = deadline_of_wait(700);

    while (!deadline_is_over(deadline))
        deadline_nap();
    answer_by_purpose(request, credentials, arg);
}

SentinelLaw(by_a_slow_callback_has_the_whole_connect_timeout)
{
    hl_client_options used = *by_purpose(NULL);

    used.credentials_cb = answer_slowly;
    used.connect_timeout_ms = slow_ms(1500);
    login_try_out(open_client_at(trio_url(trio), &used));
    check_int(atomic_load(&asked[HL_CREDENTIALS_SENTINEL]), 1);
}

SentinelLaw(by_a_callback_that_blocks_is_an_error_that_says_so)
{
    static struct desk desk = DESK_INIT;
    static struct recorder story = RECORDER_INIT;
    hl_client *client = NULL;

    desk_set_shut(&desk, true);
    expect_ok(hl_client_open(trio_url(trio),
                             LOGIN_WITHIN(50, &desk, .flags = HL_CLIENT_LAZY, .on_log = record_log,
                                          .log_level = HL_LOG_DEBUG, .arg = &story),
                             &client, ERR));
    check(recorder_wait_says(&story, "no answer of the credentials callback within 50 ms"));
    check_int(atomic_load(&desk.asked), 1);
    desk_set_shut(&desk, false);
    expect_ok(hl_client_close(client));
}
