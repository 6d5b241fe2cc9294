/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Bundles: the words of their requests, and the answers' way to those who asked. */
#include "lease/bundle.h"

#include "base/check.h"
#include "lease/command.h"
#include "lease/tag.h"

#include <stdlib.h>

enum {
    BUNDLE_ACQUIRE_HEAD = 4, /* words before those of each name, and of each name */
    BUNDLE_ACQUIRE_EACH = 3,
    BUNDLE_RELEASE_HEAD = 2,
    BUNDLE_RELEASE_EACH = 5,
};

struct bundle_name { /* what is derived from one */
    char field[HLI_FIELD_SIZE];
    char queue[HLI_CHANNEL_SIZE], redisson[HLI_CHANNEL_SIZE], own[HLI_CHANNEL_SIZE];
    char tag[HLI_CHANNEL_SIZE];
};

/* The words of one request, in one piece of memory. */
struct bundle_words {
    struct hli_bytes *keys, *args;
    struct bundle_name *names;
};

static void bundle_done(struct hli_op *op, const struct hli_answer *answer);

int hli_bundle_init(struct hli_bundle *bundle, struct hli_link *link, size_t count)
{
    *bundle = (struct hli_bundle){.link = link, .op = {.done = bundle_done}};
    bundle->ops = calloc(count, sizeof(struct hli_op *));
    return bundle->ops ? 0 : HL_ENOMEM;
}

void hli_bundle_deinit(struct hli_bundle *bundle)
{
    hli_op_deinit(&bundle->op);
    free(bundle->ops);
}

static int bundle_words_init(struct bundle_words *words, size_t count, size_t args)
{
    size_t bytes = count * sizeof(struct bundle_name) + (count + args) * sizeof(struct hli_bytes);
    void *memory = malloc(bytes);

    if (!memory)
        return HL_ENOMEM;
    words->keys = memory;
    words->args = words->keys + count;
    words->names = (void *)(words->args + args);
    return 0;
}

static void bundle_write_key(struct bundle_words *words, size_t index,
                             const struct hli_tenure *tenure)
{
    words->keys[index] = hli_command_key(tenure);
    hli_tenure_field(tenure, words->names[index].field);
}

int hli_bundle_acquire(struct hli_bundle *bundle, int64_t lease_ms, bool waits)
{
    size_t count = bundle->count, args = BUNDLE_ACQUIRE_HEAD + BUNDLE_ACQUIRE_EACH * count;
    const struct hli_tenure *first = HLI_OF(bundle->ops[0], struct hli_tenure, ask);
    char lease[HLI_NUMBER_SIZE], stands[HLI_NUMBER_SIZE];
    struct bundle_words words;

    if (bundle_words_init(&words, count, args) < 0)
        return HL_ENOMEM;
    struct hli_bytes *arg = words.args;
    *arg++ = hli_command_number(lease, lease_ms);
    *arg++ = hli_bytes_of(waits ? "1" : "0");
    *arg++ = hli_command_number(stands, hli_command_queue_ms(first->name->client));
    *arg++ = hli_bytes_of(HLI_MAILBOX);
    for (size_t i = 0; i < count; i++) {
        const struct hli_tenure *tenure = HLI_OF(bundle->ops[i], struct hli_tenure, ask);
        bundle_write_key(&words, i, tenure);
        *arg++ = hli_bytes_of(words.names[i].field);
        *arg++ = hli_command_derived(tenure, HLI_NAME_QUEUE, words.names[i].queue);
        *arg++ = hli_tag_key(tenure->name, words.names[i].tag);
    }
    int rc = hli_op_script(&bundle->op, HLI_SCRIPT_MULTI_ACQUIRE,
                           &(struct hli_script_words){words.keys, count, words.args, args});
    free(words.keys);
    return rc;
}

int hli_bundle_release(struct hli_bundle *bundle)
{
    size_t count = bundle->count, args = BUNDLE_RELEASE_HEAD + BUNDLE_RELEASE_EACH * count;
    struct bundle_words words;

    if (bundle_words_init(&words, count, args) < 0)
        return HL_ENOMEM;
    struct hli_bytes *arg = words.args;
    *arg++ = hli_bytes_of("PUBLISH");
    *arg++ = hli_bytes_of("NUMSUB");
    for (size_t i = 0; i < count; i++) {
        const struct hli_tenure *tenure = HLI_OF(bundle->ops[i], struct hli_tenure, release);
        struct bundle_name *name = &words.names[i];
        bundle_write_key(&words, i, tenure);
        *arg++ = hli_bytes_of(name->field);
        *arg++ = hli_command_derived(tenure, HLI_NAME_REDISSON_CHANNEL, name->redisson);
        *arg++ = hli_command_derived(tenure, HLI_NAME_QUEUE, name->queue);
        *arg++ = hli_command_derived(tenure, HLI_NAME_OWN_CHANNEL, name->own);
        *arg++ = hli_bytes_of(tenure->is_release_courteous ? "1" : "0");
    }
    int rc = hli_op_script(&bundle->op, HLI_SCRIPT_MULTI_RELEASE,
                           &(struct hli_script_words){words.keys, count, words.args, args});
    free(words.keys);
    return rc;
}

void hli_bundle_send(struct hli_bundle *bundle)
{
    hli_link_send(bundle->link, &bundle->op);
}

/* 0 is busy, and 1 done, as alone; 2: left as it is. */
static int64_t bundle_status(const struct hli_reply *reply, size_t index)
{
    int64_t status = 2;

    hli_reply_integer_at(hli_reply_item(reply, index), 0, &status);
    return status;
}

/* What was left as it is did not run, nor did what the answer does not speak of. */
static struct hli_answer bundle_answer_of(const struct hli_answer *answer, size_t index)
{
    if (answer->verdict != HLI_REPLIED)
        return *answer;
    if (bundle_status(answer->reply, index) == 2)
        return (struct hli_answer){.verdict = HLI_BOUNCED, .code = HL_ESERVER, .text = "not done"};
    return (struct hli_answer){.verdict = HLI_REPLIED,
                               .reply = hli_reply_item(answer->reply, index)};
}

/* The first one, unless the server spoke of one that is busy: the last of its answers then. */
static size_t bundle_kept(const struct hli_bundle *bundle, const struct hli_answer *answer)
{
    size_t spoken_of = answer->verdict == HLI_REPLIED ? answer->reply->length : 0;

    return spoken_of > 0 && spoken_of <= bundle->count &&
                   bundle_status(answer->reply, spoken_of - 1) == 0
               ? spoken_of - 1
               : 0;
}

static void bundle_done(struct hli_op *op, const struct hli_answer *answer)
{
    struct hli_bundle *bundle = HLI_OF(op, struct hli_bundle, op);

    if (answer->verdict == HLI_BOUNCED && bundle->is_wanted(bundle)) {
        hli_bundle_send(bundle);
        return;
    }
    size_t kept = bundle_kept(bundle, answer);
    for (size_t i = 0; i < bundle->count; i++) {
        struct hli_answer own = bundle_answer_of(answer, i);
        bundle->ops[i]->sent_at = op->sent_at;
        bundle->tell(bundle, i, &own, i == kept);
    }
    bundle->told(bundle);
}
