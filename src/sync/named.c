/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Names of handles. */
#include "sync/named.h"

#include "base/error.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

static int named_join(const hl_client *client, const struct hli_named *named, char *ret_bytes,
                      size_t *ret_length)
{
    const char *prefix = client->settings.name_prefix ? client->settings.name_prefix : "";
    size_t length = named->length > 0 ? named->length : strlen(named->bytes);
    size_t before = strlen(prefix);

    if (length > HLI_NAME_LIMIT || before + length > HLI_NAME_LIMIT)
        return HL_EINVAL;
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes and a length */
    memcpy(ret_bytes, prefix, before);
    memcpy(ret_bytes + before, named->bytes, length);
    *ret_length = before + length;
    return length > 0 && hli_name_is_valid(ret_bytes, *ret_length) ? 0 : HL_EINVAL;
}

int hli_named_get(hl_client *client, const struct hli_named *named, struct hli_name **ret_name,
                  hl_error *err)
{
    struct hli_name_key key = {.kind = named->kind};
    char bytes[HLI_NAME_LIMIT];
    int rc = hli_client_check(client);

    if (rc < 0)
        return hli_fail(err, rc, "%s", client ? hl_err_text(rc) : "the client is NULL");
    if (!named->bytes)
        return hli_fail(err, HL_EINVAL, "the name is NULL");
    if (named_join(client, named, bytes, &key.length) < 0)
        return hli_fail(
            err, HL_EINVAL,
            "a name has 1 to %d bytes, no braces that split its slot, and does not "
            "begin with hirelock_queue:, hirelock_fair:, hirelock_fence:, hirelock_holder: or "
            "hirelock_rw_writer:",
            HLI_NAME_LIMIT);
    key.bytes = bytes;
    rc = hli_name_get(client, &key, ret_name);
    return rc < 0 ? hli_fail(err, rc, "%s", hl_err_text(rc)) : 0;
}

void hli_named_put(struct hli_name *name)
{
    int cancelability = hli_cancelability_off(); /* the last one frees a closed client */

    if (hli_client_check(name->client) != HL_EFORKED)
        hli_name_unref(name);
    hli_cancelability_restore(cancelability);
}

int hli_handle_new(hl_client *client, const struct hli_named *named, struct hli_handle **ret_handle,
                   hl_error *err)
{
    if (!ret_handle)
        return hli_fail(err, HL_EINVAL, "the handle's pointer is NULL");
    struct hli_handle *handle = malloc(sizeof(*handle));
    if (!handle)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    int rc = hli_named_get(client, named, &handle->name, err);
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
    hli_named_put(handle->name);
    free(handle);
}

int hli_handle_enter(const struct hli_handle *handle, hl_error *err)
{
    int rc = handle ? hli_client_enter(handle->name->client) : HL_EINVAL;

    return rc == 0 ? 0 : hli_fail(err, rc, "%s", handle ? hl_err_text(rc) : "the handle is NULL");
}

void hli_handle_leave(const struct hli_handle *handle)
{
    hli_client_leave(handle->name->client);
}
