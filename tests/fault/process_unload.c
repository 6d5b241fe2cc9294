/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */

/* A plugin with the library in it, or beside it, is unloaded before the thread ends that used it.
 */

#include <dlfcn.h>
#include <pthread.h>

#include "support/redis_server.h"
#include "support/test.h"

struct unload {
    const char *path, *url;
};

static void *unload_run(void *arg)
{
    const struct unload *unload = arg;
    void *plugin = dlopen(unload->path, RTLD_NOW | RTLD_LOCAL);
    check_msg(plugin != NULL, "%s", dlerror());
    int (*use)(const char *url) = NULL;
    *(void **)&use = dlsym(plugin, "plugin_use");
    check_int(use(unload->url), 0);
    check_int(dlclose(plugin), 0);
    return NULL;
}

static void unload_check(const char *path)
{
    struct redis_server *server = redis_server_start(NULL);
    struct unload unload = {path, redis_server_url(server)};
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
