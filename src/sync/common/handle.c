/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Handles. */
#include "sync/common/handle.h"

#include "base/check.h"
#include "base/error.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

static int handle_join(const hl_client *client, struct hli_bytes name, char *ret_bytes,
                       size_t *ret_length, hl_error *err)
{
    const char *prefix = client->settings.name_prefix ? client->settings.name_prefix : "";
    size_t length = name.length > 0 ? name.length : strlen(name.data);
    size_t before = length > 0 && length <= HLI_NAME_LIMIT ? strlen(prefix) : 0;

    *ret_length = before + length;
    if (*ret_length <= HLI_NAME_LIMIT) {
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes and a length */
        memcpy(ret_bytes, prefix, before);
        memcpy(ret_bytes + before, name.data, length);
    }
    return hli_name_check("name", ret_bytes, *ret_length, err);
}

/* Redisson derives the same keys from "x" and from "{x}", so a kind with state in derived keys
 * would mix the two up. */
static int handle_check_braces(const struct hli_kind *kind, const char *bytes, size_t length,
                               hl_error *err)
{
    HLI_CHECK(length <= HLI_NAME_LIMIT); /* the bytes are valid up to the limit */
    bool is_in_braces = length > 2 && bytes[0] == '{' && bytes[length - 1] == '}' &&
                        !memchr(bytes + 1, '{', length - 1);

    if (!kind->is_braced || !is_in_braces)
        return 0;
    return hli_fail(err, HL_EINVAL,
                    "the name is nothing but braces around another one, whose keys it would share: "
                    "leave them out");
}

int hli_handle_init(struct hli_handle *handle, hl_client *client, const struct hli_kind *kind,
                    struct hli_bytes name, hl_error *err)
{
    struct hli_name_key key = {.kind = kind};
    char bytes[HLI_NAME_LIMIT];
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!name.data)
        return hli_fail(err, HL_EINVAL, "the name is NULL");
    rc = handle_join(client, name, bytes, &key.length, err);
    if (rc == 0)
        rc = handle_check_braces(kind, bytes, key.length, err);
    if (rc < 0)
        return rc;
    key.bytes = bytes;
    handle->name = hli_name_get(client, &key);
    return handle->name ? 0 : hli_no_memory(err);
}

void hli_handle_deinit(struct hli_handle *handle)
{
    int cancelability = hli_cancelability_off(); /* the last handle frees a closed client */

    if (hli_client_check(handle->name->client) != HL_EFORKED)
        hli_name_unref(handle->name);
    hli_cancelability_restore(cancelability);
}

int hli_handle_new(hl_client *client, const struct hli_kind *kind, const char *name,
                   struct hli_handle **ret_handle, hl_error *err)
{
    struct hli_handle *handle;

    if (!ret_handle)
        return hli_fail(err, HL_EINVAL, "the place for the handle is NULL");
    handle = malloc(sizeof(*handle));
    if (!handle)
        return hli_no_memory(err);
    int rc = hli_handle_init(handle, client, kind, (struct hli_bytes){name, 0}, err);
    if (rc < 0)
        free(handle);
    else
        *ret_handle = handle;
    return rc;
}

void hli_handle_free(struct hli_handle *handle)
{
    if (!handle)
        return;
    hli_handle_deinit(handle);
    free(handle);
}

const char *hli_handle_name(const struct hli_handle *handle, size_t *ret_length)
{
    if (!handle)
        return NULL;
    if (ret_length)
        *ret_length = handle->name->length;
    return handle->name->bytes;
}

static void handle_end_call(struct hli_name *name)
{
    hli_name_end_call(name);
    hli_name_unref(name);
}

/* A call about the handle's name; NULL when memory is out. */
static struct hli_call *handle_call(const struct hli_handle *handle,
                                    const struct hli_call_kind *kind)
{
    struct hli_call *call = hli_call_new(kind, handle->name->client);

    if (!call)
        return NULL;
    hli_name_ref(handle->name);
    call->name = handle->name;
    call->drop_name = handle_end_call;
    call->slot = handle->name->slot;
    call->lane = hli_name_begin_call(call->name);
    call->about = (struct hli_bytes){call->name->bytes, call->name->length};
    return call;
}

int hli_handle_run(const struct hli_handle *handle, const struct hli_call_kind *kind,
                   const void *what, const struct hli_completion *completion)
{
    int rc = hli_handle_enter(handle, completion);

    if (rc < 0)
        return rc;
    hl_client *client = handle->name->client;
    rc = hli_call_run(handle_call(handle, kind), what, completion);
    hli_client_leave(client);
    return rc;
}
