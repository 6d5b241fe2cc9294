/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* The common words of commands. */
#include "lease/state/command.h"

#include "lease/state/contention.h"

#include <string.h>

enum {
    COMMAND_ALONE_MS = 1000,
    COMMAND_SIGN_POLLS = 3, /* the next request comes in 1.3 polls */
};

static int64_t command_claim_ms(const hl_client_options *settings)
{
    int64_t poll_ms = settings->poll_ms, watchdog_ms = settings->watchdog_timeout_ms;

    if (watchdog_ms >= 4 * poll_ms)
        return 4 * poll_ms;
    return watchdog_ms > 2 * poll_ms ? watchdog_ms : 2 * poll_ms;
}

int64_t hli_command_claim_ms(const hl_client *client)
{
    return command_claim_ms(&client->settings);
}

int64_t hli_lease_longest_ms(const hl_client_options *settings)
{
    int64_t claim_ms = command_claim_ms(settings);

    return claim_ms > settings->watchdog_timeout_ms ? claim_ms : settings->watchdog_timeout_ms;
}

void hli_command_begin(struct hli_args *args, hli_script_id script, const struct hli_name *name)
{
    hli_args_begin_script(args, script, 1);
    hli_args_bytes(args, (struct hli_bytes){name->bytes, name->length});
}

bool hli_command_is_alone(const struct hli_name *name)
{
    return hli_now() < atomic_load(&name->alone_until);
}

/* The scripts of a kind that is handed on take a queue that they cannot reach for an empty one. */
bool hli_command_goes_alone(struct hli_name *name, const struct hli_answer *refusal, hli_ns now)
{
    if (!name->kind->is_handed_on || now < atomic_load(&name->alone_until) ||
        !hli_answer_is(refusal, "TRYAGAIN"))
        return false;
    atomic_store(&name->alone_until, hli_after_ms(now, COMMAND_ALONE_MS));
    return true;
}

/* Grants come by the mailbox, which in a cluster is one of the name's own channels. Who may not
 * listen at the mailbox, may most likely use no channel: so it is taken for deaf until the name's
 * own channel is heard. */
bool hli_command_is_deaf(const struct hli_name *name)
{
    const struct hli_contention *contention = name->contention;
    bool has_mailbox = !name->client->wording->is_for_cluster;
    bool is_deaf = has_mailbox && atomic_load(&name->client->is_deaf);

    if (has_mailbox && name->kind->is_handed_on)
        return is_deaf;
    if (contention && contention->confirmed_at != 0)
        return contention->is_deaf;
    return is_deaf || (contention && contention->is_deaf);
}

int64_t hli_command_sign_ms(const hl_client *client)
{
    return COMMAND_SIGN_POLLS * client->settings.poll_ms;
}

void hli_command_turn(struct hli_args *args, const struct hli_name *name,
                      const struct hli_acquire_request *request)
{
    hli_command_derived(args, name, HLI_NAME_QUEUE);
    hli_args_number(args, request->queues ? hli_command_sign_ms(name->client) : 0);
    hli_args_number(args, hli_command_is_deaf(name));
}

void hli_command_declare(struct hli_args *args, const struct hli_name *name, const char *prefix)
{
    char text[HLI_CHANNEL_SIZE];

    hli_args_key(args, (struct hli_bytes){text, hli_name_write(name, prefix, text)});
}

void hli_command_declare_suffixed(struct hli_args *args, const struct hli_name *name,
                                  const char *suffix)
{
    char text[HLI_CHANNEL_SIZE];

    hli_args_key(args, (struct hli_bytes){text, hli_name_write_suffixed(name, suffix, text)});
}

void hli_command_declare_renewed(struct hli_args *args, const struct hli_tenure *tenure)
{
    struct hli_name *name = tenure->name;

    if (!name->kind->declare || !name->client->wording->is_for_cluster)
        return;
    hli_mutex_lock(&name->mutex);
    name->kind->declare(tenure, args);
    hli_mutex_unlock(&name->mutex);
}

void hli_command_name(struct hli_args *args, const struct hli_name *name)
{
    hli_args_bytes(args, (struct hli_bytes){name->bytes, name->length});
}

void hli_command_derived(struct hli_args *args, const struct hli_name *name, const char *prefix)
{
    char text[HLI_CHANNEL_SIZE];

    hli_args_bytes(args, (struct hli_bytes){text, hli_name_write(name, prefix, text)});
}

void hli_command_channel(struct hli_args *args, const struct hli_name *name)
{
    char text[HLI_CHANNEL_SIZE];

    hli_args_bytes(args, (struct hli_bytes){text, hli_name_write(name, name->kind->channel, text)});
}

void hli_command_publish(struct hli_args *args, const struct hli_name *name)
{
    hli_command_channel(args, name);
    hli_args_text(args, name->client->wording->publish);
}

void hli_command_field(struct hli_args *args, const struct hli_tenure *tenure)
{
    char text[HLI_FIELD_SIZE];

    hli_args_text(args, hli_tenure_field(tenure, text));
}

size_t hli_command_write_mailbox(const struct hli_name *name, char text[HLI_CHANNEL_SIZE])
{
    size_t length = hli_name_write(name, HLI_MAILBOX, text);

    memcpy(text + length, ":", 2);
    return length + 1;
}

void hli_command_mailbox(struct hli_args *args, const struct hli_name *name)
{
    char text[HLI_CHANNEL_SIZE];

    if (name->client->wording->is_for_cluster)
        hli_args_bytes(args, (struct hli_bytes){text, hli_command_write_mailbox(name, text)});
    else
        hli_args_text(args, HLI_MAILBOX);
}

void hli_command_holders_mailbox(struct hli_args *args, const struct hli_name *name)
{
    if (name->client->wording->is_for_cluster && !name->kind->is_handed_on)
        hli_args_text(args, "");
    else
        hli_command_mailbox(args, name);
}
