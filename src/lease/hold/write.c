/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Writes: their arguments, and the words of the scripts. */
#include "lease/hold/write.h"

#include "base/error.h"
#include "base/versioned.h"

#include <stdio.h>
#include <string.h>

static const int64_t write_max_ms = INT64_C(100000000000);
static const size_t write_max_value = (size_t)16 << 20;

int hli_write_key(const void *key, size_t length, struct hli_bytes *ret_key, hl_error *err)
{
    size_t total = key && length == 0 ? strlen(key) : length;

    if (!key)
        return hli_fail(err, HL_EINVAL, "the key is NULL");
    if (hli_name_check("key", key, total, err) < 0)
        return HL_EINVAL;
    *ret_key = (struct hli_bytes){key, total};
    return 0;
}

static int write_check(const hl_fenced_write *said, struct hli_bytes *ret_key, hl_error *err)
{
    if (said->value_length > write_max_value || (!said->value && said->value_length > 0))
        return hli_fail(err, HL_EINVAL, "the value is NULL, or longer than 16 MiB");
    if (said->token > INT64_MAX)
        return hli_fail(err, HL_EINVAL, "a token is not above 2^63 - 1");
    if (said->expire_ms < 0 || said->expire_ms > write_max_ms)
        return hli_fail(err, HL_EINVAL, "expire_ms is not from 0 to 10^11");
    if (said->remember_ms < 0 || said->remember_ms > write_max_ms)
        return hli_fail(err, HL_EINVAL, "remember_ms is not from 0 to 10^11");
    return hli_write_key(said->key, said->key_length, ret_key, err);
}

static void write_fill(struct hli_write *write, const hl_fenced_write *said, struct hli_bytes key)
{
    char *value = write->bytes + key.length;

    memcpy(write->bytes, key.data, key.length);
    if (said->value_length > 0)
        memcpy(value, said->value, said->value_length);
    write->key = (struct hli_bytes){write->bytes, key.length};
    write->value = (struct hli_bytes){value, said->value_length};
    write->token = said->token;
    write->expire_ms = said->expire_ms;
    write->remember_ms = said->remember_ms;
}

int hli_write_new(const hl_fenced_write *passed, struct hli_write **ret_write, hl_error *err)
{
    hl_fenced_write said = HL_FENCED_WRITE_INIT;
    struct hli_bytes key = {NULL, 0};

    if (!passed)
        return hli_fail(err, HL_EINVAL, "the write is NULL");
    int rc = hli_versioned_read(&said, sizeof(said), passed, "the write", err);
    if (rc == 0)
        rc = write_check(&said, &key, err);
    if (!key.data)
        return rc;
    struct hli_write *write = malloc(sizeof(*write) + key.length + said.value_length);
    if (!write)
        return hli_no_memory(err);
    hli_ref_init(&write->ref);
    write_fill(write, &said, key);
    *ret_write = write;
    return 0;
}

void hli_write_ref(struct hli_write *write)
{
    hli_ref_take(&write->ref);
}

void hli_write_unref(struct hli_write *write)
{
    if (write && hli_ref_drop(&write->ref))
        free(write);
}

void hli_write_keys(const struct hli_write *write, struct hli_args *args)
{
    char fence[HLI_CHANNEL_SIZE];

    hli_args_bytes(args, write->key);
    hli_args_bytes(args,
                   (struct hli_bytes){fence, hli_name_derive(write->key, HLI_NAME_FENCE, fence)});
}

void hli_write_words(const struct hli_write *write, struct hli_args *args)
{
    hli_args_bytes(args, write->value);
    hli_args_number(args, (int64_t)write->token);
    hli_args_number(args, write->expire_ms);
    hli_args_number(args, write->remember_ms);
}

int hli_write_refused(const struct hli_write *write, const struct hli_reply *wrote,
                      char text[HLI_WRITE_TEXT])
{
    struct hli_answer refused = {.code = HL_EFENCED};
    char shown[64];

    hli_error_escape(shown, sizeof(shown), write->key.data, write->key.length);
    if (wrote->kind == HLI_REPLY_ERROR) {
        refused = hli_answer_from(wrote);
        snprintf(text, HLI_WRITE_TEXT, "set '%s': %s", shown, refused.text);
    } else {
        snprintf(text, HLI_WRITE_TEXT, "set '%s': token %s was there before", shown, wrote->text);
    }
    return refused.code;
}
