/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Writes: their arguments, and the words of the scripts. */
#include "lease/write.h"

#include "base/error.h"
#include "base/versioned.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t write_max_ms = INT64_C(100000000000);
static const size_t write_max_value = (size_t)16 << 20;

int hli_write_key(const void *key, size_t length, struct hli_bytes *ret_key, hl_error *err)
{
    size_t total = key && length == 0 ? strlen(key) : length;

    if (!key || !hli_name_is_valid(key, total))
        return hli_fail(err, HL_EINVAL,
                        "a key has 1 to %d bytes, no braces that split its slot, and does not "
                        "begin like one of hirelock's own",
                        HLI_NAME_LIMIT);
    *ret_key = (struct hli_bytes){key, total};
    return 0;
}

static int write_check(const hl_write *said, struct hli_bytes *ret_key, hl_error *err)
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

static void write_fill(struct hli_write *write, const hl_write *said, struct hli_bytes key)
{
    char *value = write->bytes + key.length;

    memcpy(write->bytes, key.data, key.length);
    if (said->value_length > 0)
        memcpy(value, said->value, said->value_length);
    write->key = (struct hli_bytes){write->bytes, key.length};
    write->value = (struct hli_bytes){value, said->value_length};
    write->fence_length = hli_name_derive(key, HLI_NAME_FENCE, write->fence);
    snprintf(write->token, sizeof(write->token), "%" PRIu64, said->token);
    snprintf(write->expire, sizeof(write->expire), "%" PRId64, said->expire_ms);
    snprintf(write->remember, sizeof(write->remember), "%" PRId64, said->remember_ms);
}

int hli_write_new(const hl_write *passed, struct hli_write **ret_write, hl_error *err)
{
    hl_write said = HL_WRITE_INIT;
    struct hli_bytes key = {NULL, 0};

    if (!passed || !hli_versioned_read(&said, sizeof(said), passed))
        return hli_fail(err, HL_EINVAL,
                        "the write is NULL, its size is not set, or it holds what this version "
                        "does not know");
    int rc = write_check(&said, &key, err);
    if (!key.data)
        return rc;
    struct hli_write *write = malloc(sizeof(*write) + key.length + said.value_length);
    if (!write)
        return hli_fail(err, HL_ENOMEM, "%s", hl_err_text(HL_ENOMEM));
    hli_ref_init(&write->ref);
    write_fill(write, &said, key);
    *ret_write = write;
    return 0;
}

bool hli_write_has_token(const struct hli_write *write)
{
    return strcmp(write->token, "0") != 0;
}

void hli_write_by(struct hli_write *write, uint64_t token)
{
    if (!hli_write_has_token(write))
        snprintf(write->token, sizeof(write->token), "%" PRIu64, token);
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

void hli_write_keys(const struct hli_write *write, struct hli_bytes keys[2])
{
    keys[0] = write->key;
    keys[1] = (struct hli_bytes){write->fence, write->fence_length};
}

void hli_write_words(const struct hli_write *write, struct hli_bytes words[HLI_WRITE_WORDS])
{
    words[0] = write->value;
    words[1] = hli_bytes_of(write->token);
    words[2] = hli_bytes_of(write->expire);
    words[3] = hli_bytes_of(write->remember);
}
