/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* Passwords are in no text, and not in the memory that a core dump has. */

#include "login_kit.h"

#include "support/topologies.h"

#include <fcntl.h>
#include <unistd.h>

/* The tests' own copies would be found, too: so a secret is made letter by letter from these, where
 * it is used. */
enum { SECRET_LENGTH = 40 };

static void secret_make(char secret[SECRET_LENGTH + 1], unsigned seed)
{
    for (int i = 0; i < SECRET_LENGTH; i++) {
        seed = seed * 1103515245 + 12345;
        secret[i] = (char)('a' + (seed >> 16) % 26);
    }
    secret[SECRET_LENGTH] = '\0';
}

/* Looks for the secret of this seed without having it in memory. */
static bool secret_is_at(const char *at, unsigned seed)
{
    for (int i = 0; i < SECRET_LENGTH; i++) {
        seed = seed * 1103515245 + 12345;
        if (at[i] != (char)('a' + (seed >> 16) % 26))
            return false;
    }
    return true;
}

struct mapping {
    uintptr_t begin, end;
    char flags[256];
};

/* The next mapping of /proc/self/smaps, with its flags. */
static bool mapping_next(FILE *smaps, struct mapping *ret_mapping)
{
    char line[512];
    bool has_one = false;

    while (fgets(line, sizeof line, smaps)) {
        uintptr_t begin, end;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, mode) == 3 && mode[0] == 'r') {
            ret_mapping->begin = begin;
            ret_mapping->end = end;
            has_one = strstr(line, "[v") == NULL; /* vvar, vdso, vsyscall */
        } else if (has_one && sscanf(line, "VmFlags: %255[^\n]", ret_mapping->flags) == 1) {
            return true;
        }
    }
    return false;
}

/* How often the secret stands where a core dump would have it, and where it would not. */
struct found {
    int dumped, hidden;
};

/* One window after the other, with an overlap; the window itself is left out. */
static void found_in(struct found *found, const struct mapping *mapping, int memory, unsigned seed)
{
    static char window[1 << 20];
    bool is_hidden = strstr(mapping->flags, " dd") != NULL;

    for (uintptr_t at = mapping->begin; at < mapping->end; at += sizeof window - SECRET_LENGTH) {
        size_t length = mapping->end - at < sizeof window ? mapping->end - at : sizeof window;
        ssize_t got = pread(memory, window, length, (off_t)at);
        for (ssize_t i = 0; i + SECRET_LENGTH <= got; i++) {
            uintptr_t place = at + (uintptr_t)i;
            bool is_window = place + SECRET_LENGTH > (uintptr_t)window &&
                             place < (uintptr_t)window + sizeof window;
            if (!is_window && secret_is_at(window + i, seed)) {
                found->dumped += !is_hidden;
                found->hidden += is_hidden;
            }
        }
        if (mapping->end - at <= sizeof window)
            break;
    }
}

static struct found found_of(unsigned seed)
{
    struct found found = {0};
    struct mapping mapping;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

    check(smaps && memory >= 0);
    while (mapping_next(smaps, &mapping))
        found_in(&found, &mapping, memory, seed);
    fclose(smaps);
    close(memory);
    return found;
}

/* The server has the secret from here; nothing of this process keeps it. */
static void secret_to_server(const char *user, unsigned seed)
{
    char command[256], secret[SECRET_LENGTH + 1];

    secret_make(secret, seed);
    snprintf(command, sizeof command,
             "exec redis-cli -s %s ACL SETUSER %s on '>%s' '~*' '&*' +@all"
             " >/dev/null",
             redis_server_socket(server), user, secret);
    check_int(system(command), 0);
    explicit_bzero(command, sizeof command);
    explicit_bzero(secret, sizeof secret);
}

static atomic_uint seed_given;
static int64_t given_ms;

static void give_secret(const hl_credentials_request *request, hl_credentials *credentials,
                        void *arg)
{
    char secret[SECRET_LENGTH + 1];

    (void)request;
    secret_make(secret, atomic_load(&seed_given));
    hl_credentials_set(credentials, arg, secret, given_ms);
    explicit_bzero(secret, sizeof secret);
}

static void skip_where_memory_is_shadowed(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip("a sanitizer maps terabytes, and keeps what was freed");
#endif
    if (system("command -v redis-cli >/dev/null") != 0)
        skip("no redis-cli");
}

LoginLaw(login_secret, of_a_callback_is_nowhere_once_it_was_said)
{
    skip_where_memory_is_shadowed();
    secret_to_server("app", 1);
    secret_to_server("next", 2);
    atomic_store(&seed_given, 1);
    given_ms = slow_ms(1500);
    hl_client *client = open_client(
        CLIENT(.credentials_cb = give_secret, .credentials_arg = "app", .poll_ms = 60000));
    login_try_out(client);
    struct found found = found_of(1);
    check_int(found.dumped, 0);
    check_int(found.hidden, 0);
    int64_t auths = redis_calls(server, "auth");
    struct deadline deadline = deadline_of_wait(20000);
    while (redis_calls(server, "auth") < auths + 2 && !deadline_is_over(deadline))
        deadline_nap();
    check(redis_calls(server, "auth") >= auths + 2);
    expect_ok(hl_client_ping(client, -1, ERR));
    found = found_of(1);
    check_int(found.dumped, 0);
    close_client(client);
    found = found_of(1);
    check_int(found.dumped + found.hidden, 0);
}

LoginLaw(login_secret, of_the_options_is_where_no_core_dump_has_it)
{
    char secret[SECRET_LENGTH + 1];

    skip_where_memory_is_shadowed();
    secret_to_server("app", 3);
    secret_make(secret, 3);
    hl_client *client = open_client(CLIENT(.username = "app", .password = secret));
    explicit_bzero(secret, sizeof secret);
    login_try_out(client);
    struct found found = found_of(3);
    check_int(found.dumped, 0);
    check_int(found.hidden, 1);
    redis_kill_links(server, "hirelock");
    check(login_wait("app", 2, 20000));
    expect_ok(hl_client_ping(client, -1, ERR));
    found = found_of(3);
    check_int(found.dumped, 0);
    close_client(client);
    found = found_of(3);
    check_int(found.dumped + found.hidden, 0);
}

LoginLaw(login_secret, of_a_url_is_where_no_core_dump_has_it)
{
    char secret[SECRET_LENGTH + 1], url[256];

    skip_where_memory_is_shadowed();
    if (redis_server_has_tls(server))
        skip("the URL is that of a plain server");
    secret_to_server("app", 4);
    secret_make(secret, 4);
    snprintf(url, sizeof url, "redis://app:%s@127.0.0.1:%d", secret, redis_server_port(server));
    hl_client *client = open_client_at(url, NULL);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(url, sizeof url);
    login_try_out(client);
    struct found found = found_of(4);
    check_int(found.dumped, 0);
    check_int(found.hidden, 1);
    close_client(client);
    found = found_of(4);
    check_int(found.dumped + found.hidden, 0);
}

static const char *file_of_secret(unsigned seed)
{
    static char path[300];
    char secret[SECRET_LENGTH + 1];

    snprintf(path, sizeof path, "%s/password", redis_server_dir(server));
    secret_make(secret, seed);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, secret, SECRET_LENGTH) == SECRET_LENGTH);
    close(fd);
    explicit_bzero(secret, sizeof secret);
    return path;
}

LoginLaw(login_secret, of_a_file_is_nowhere_once_it_was_said)
{
    skip_where_memory_is_shadowed();
    secret_to_server("app", 5);
    hl_client *client = open_client(CLIENT(.username = "app", .password_file = file_of_secret(5)));
    login_try_out(client);
    struct found found = found_of(5);
    check_int(found.dumped + found.hidden, 0);
    close_client(client);
}

/* A secret that the server refuses is in no line of the log, no event and no error. */
static void expect_untold(const hl_client_options *options, const char *secret)
{
    static struct recorder story;
    hl_client_options used = *options;
    hl_client *client = NULL;
    hl_error err = HL_ERROR_INIT;

    story = (struct recorder)RECORDER_INIT;
    expect_no_open(redis_server_url(server), &used, HL_EDENIED, "refused the user or password");
    used.flags = HL_CLIENT_LAZY;
    used.on_log = record_log;
    used.on_event = record_event;
    used.log_level = HL_LOG_DEBUG;
    used.arg = &story;
    used.backoff_max_ms = 50;
    expect_ok(hl_client_open(redis_server_url(server), &used, &client, ERR));
    check(recorder_wait_says(&story, "refused the user or password"));
    expect_outcome(hl_client_ping(client, -1, &err), HL_EDENIED);
    check(!strstr(err.text, secret));
    check(!recorder_says(&story, secret));
    expect_ok(hl_client_close(client));
    check(!recorder_says(&story, secret));
}

LoginLaw(login_secret, that_is_refused_is_in_no_text)
{
    static struct desk desk = DESK_INIT;
    char path[300];

    desk_gives(&desk, "app", "never-to-be-seen", 0);
    expect_untold(LOGIN(&desk), "never-to-be-seen");
    expect_untold(CLIENT(.username = "app", .password = "never-to-be-seen"), "never-to-be-seen");
    snprintf(path, sizeof path, "%s/wrong", redis_server_dir(server));
    FILE *file = fopen(path, "we");
    check(file && fputs("never-to-be-seen", file) >= 0 && fclose(file) == 0);
    expect_untold(CLIENT(.username = "app", .password_file = path), "never-to-be-seen");
}
