/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/glance.h"

#include <stdlib.h>
#include <string.h>

struct glance {
    hl_client *client;
    struct cli_name name; /* its bytes are below */
    bool has_script;      /* it was sent with the script's text */
    cli_glance_cb done;
    void *arg;
    char bytes[];
};

int cli_glance_load(hl_client *client, const char *node, char **ret_sha, hl_error *err)
{
    const char *words[] = {"SCRIPT", "LOAD", cli_look_script};
    hl_command command = HL_COMMAND_INIT;
    hl_reply *reply = NULL;

    *ret_sha = NULL;
    command.flags = HL_COMMAND_READS; /* a second copy does no harm */
    command.words = words;
    command.word_count = 3;
    command.node = node;
    int rc = hl_client_command(client, &command, &reply, err);
    if (rc == 0 && reply->text)
        *ret_sha = strdup(reply->text);
    hl_reply_free(reply);
    return rc == HL_EDENIED ? 0 : rc;
}

static void glance_done(int code, const hl_reply *reply, const hl_error *err, void *arg);

/* The words are on the heap, since the thread of the callbacks sends too, and they are long. */
static int glance_send(struct glance *glance, const char *sha)
{
    struct cli_look *look = malloc(sizeof(*look));
    int rc = look ? HL_EINVAL : HL_ENOMEM;

    glance->has_script = !sha;
    if (look && cli_look_begin(look, &glance->name, sha))
        rc = hl_client_command_async(glance->client, &look->command, glance_done, glance);
    free(look);
    return rc;
}

static bool glance_lacks_script(const struct glance *glance, int code, const hl_error *err)
{
    return code == HL_ESERVER && !glance->has_script && strstr(err->text, "NOSCRIPT") != NULL;
}

static void glance_done(int code, const hl_reply *reply, const hl_error *err, void *arg)
{
    struct glance *glance = arg;

    /* Another node serves the slot by now, or somebody has flushed the scripts. */
    if (glance_lacks_script(glance, code, err) && glance_send(glance, NULL) == 0)
        return;
    struct cli_glance seen = {.name = glance->name, .code = code, .err = err};
    if (code == 0)
        seen.lock = cli_look_read(&glance->name, reply);
    glance->done(&seen, glance->arg);
    free(glance);
}

int cli_glance(hl_client *client, const struct cli_name *name, const char *sha, cli_glance_cb done,
               void *arg)
{
    struct glance *glance = malloc(sizeof(*glance) + name->length + 1);

    if (!glance)
        return HL_ENOMEM;
    memcpy(glance->bytes, name->bytes, name->length);
    glance->bytes[name->length] = '\0';
    glance->client = client;
    glance->name = (struct cli_name){glance->bytes, name->length, name->prefix};
    glance->done = done;
    glance->arg = arg;
    int rc = glance_send(glance, sha);
    if (rc < 0)
        free(glance);
    return rc;
}
