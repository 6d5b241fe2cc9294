/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A plugin with the library in it, or beside it, is unloaded before the thread ends that used it,
 * or while a look-up of a host name hangs that it has begun. */

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/census.h"
#include "support/redis_server.h"
#include "support/test.h"

static atomic_int hanging;
static atomic_bool is_over;

/* It stands before that of libc for the plugins, too (CMakeLists.txt). */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_addresses)
{
    (void)host, (void)service, (void)ret_addresses;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    atomic_fetch_add(&hanging, 1);
    while (!atomic_load(&is_over))
        deadline_nap();
    return EAI_AGAIN;
}

struct unload {
    const char *path, *url;
    int result; /* of plugin_use() */
};

static void *unload_run(void *arg)
{
    const struct unload *unload = arg;
    void *plugin = dlopen(unload->path, RTLD_NOW | RTLD_LOCAL);
    check_msg(plugin != NULL, "%s", dlerror());
    int (*use)(const char *url) = NULL;
    *(void **)&use = dlsym(plugin, "plugin_use");
    check_int(use(unload->url), unload->result);
    check_int(dlclose(plugin), 0);
    return NULL;
}

static void unload_check(const char *path)
{
    struct redis_server *server = redis_server_start(NULL);
    struct unload unload = {.path = path, .url = redis_server_url(server)};
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, unload_run, &unload), 0);
    check_int(pthread_join(thread, NULL), 0);
    redis_server_stop(server);
}

Test(process_unload, of_a_plugin_on_the_shared_library_leaves_threads_whole)
{
    unload_check(HL_PLUGIN_SHARED);
}

/* Nothing frees the owner of a thread that ends when the library has gone. */
Test(process_unload, of_a_plugin_with_the_static_library_leaves_threads_whole)
{
#ifdef __SANITIZE_ADDRESS__
    skip("a thread's owner is left behind, which is a leak");
#endif
    unload_check(HL_PLUGIN_STATIC);
}

static bool hangs(void *none)
{
    (void)none;
    return atomic_load(&hanging) == 1;
}

static void unload_while_a_name_hangs(const char *path)
{
    struct unload unload = {.path = path,
                            .url = "redis://name.test:1?connect_timeout=50ms",
                            .result = -22 /* HL_ECONN */};
    unload_run(&unload);
    check(wait_until(hangs, NULL, 30000)); /* its thread may come to it after the plugin is gone */
    atomic_store(&is_over, true);
    check(census_waits_for_no_thread()); /* it went on in the library */
}

Test(process_unload, of_a_plugin_on_the_shared_library_while_a_name_hangs)
{
    unload_while_a_name_hangs(HL_PLUGIN_SHARED);
}

Test(process_unload, of_a_plugin_with_the_static_library_while_a_name_hangs)
{
#ifdef __SANITIZE_ADDRESS__
    skip("a thread's owner is left behind, which is a leak");
#endif
    unload_while_a_name_hangs(HL_PLUGIN_STATIC);
}
