/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tags: writing, parsing, and when they are written. */
#include "lease/hold/tag.h"

#include "lease/state/command.h"
#include "lease/state/grace.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    TAG_SHOW_MS = 20,    /* a shorter hold is not tagged; by then the word for a pass is too old */
    TAG_RETRY_MS = 1000, /* after a refusal, and while the link is down */
    TAG_STANDS_MS = 300000, /* nothing removes a tag after its hold: it expires */
    TAG_AGAIN_MS = 120000,  /* so it is written again */
};

/* A host's name should have no space, but the administrator may have set one. */
void hli_tag_write_self(char *text, size_t size)
{
    char host[HLI_TAG_HOST] = "";

    gethostname(host, sizeof(host) - 1);
    for (char *at = host; *at; at++)
        if (*at == ' ')
            *at = '_';
    snprintf(text, size, "%ld %s", (long)getpid(), host[0] ? host : "?");
}

static bool tag_has_client(const struct hli_name *name)
{
    return (name->client->settings.flags & HL_CLIENT_HOLDER_INFO) != 0;
}

bool hli_tag_is_wanted(const struct hli_name *name)
{
    return name->kind->is_tagged && tag_has_client(name);
}

bool hli_tag_is_asked(const struct hli_name *name)
{
    const struct hli_kind *kind = name->kind;

    return (kind->is_tagged || (kind->sibling && kind->sibling->is_tagged)) && tag_has_client(name);
}

void hli_tag_declare(const struct hli_name *name, struct hli_args *args)
{
    if (hli_tag_is_asked(name) && !hli_command_is_alone(name))
        hli_command_declare(args, name, HLI_NAME_TAG);
}

void hli_tag_key(const struct hli_name *name, struct hli_args *args)
{
    if (hli_tag_is_asked(name))
        hli_command_derived(args, name, HLI_NAME_TAG);
}

void hli_tag_write_thread(char text[HLI_TAG_THREAD])
{
    prctl(PR_GET_NAME, text);
}

void hli_tag_begin(struct hli_turn *turn, struct hli_tenure *tenure,
                   const char thread[HLI_TAG_THREAD])
{
    free(tenure->tag);
    tenure->tag = hli_tag_is_wanted(turn->name) ? calloc(1, sizeof(*tenure->tag)) : NULL;
    if (!tenure->tag)
        return;
    memcpy(tenure->tag->thread, thread, sizeof(tenure->tag->thread));
    tenure->tag->shows_at = hli_after_ms(turn->now, TAG_SHOW_MS);
}

hli_ns hli_tag_due(const struct hli_tenure *tenure)
{
    bool may_ask = tenure->tag && tenure->asking == HLI_ASKING_NOTHING &&
                   (!HLI_GRACE_IS_ON(tenure->name->client) || hli_grace_is_met(tenure));

    return may_ask && tenure->tag->shows_at != 0 ? tenure->tag->shows_at : HLI_NEVER;
}

bool hli_tag_is_shown(const struct hli_tenure *tenure)
{
    return tenure->tag && tenure->tag->is_shown;
}

static int tag_format(struct hli_tenure *tenure, hli_ns now)
{
    const struct hli_name *name = tenure->name;
    char words[sizeof(name->client->self) + HLI_TAG_THREAD];
    struct hli_args args;

    snprintf(words, sizeof(words), "%s %s", name->client->self, tenure->tag->thread);
    hli_args_begin_script(&args, name->kind->tag, 2);
    hli_command_name(&args, name);
    hli_command_derived(&args, name, HLI_NAME_TAG);
    hli_command_field(&args, tenure);
    hli_args_number(&args, (int64_t)tenure->hold.owner->number);
    hli_args_number(&args, (now - tenure->hold.began) / 1000000);
    hli_args_text(&args, words);
    hli_args_number(&args, TAG_STANDS_MS);
    return hli_args_end(&args, &tenure->ask);
}

/* Another request goes first: the turn of its answer comes here again. */
void hli_tag_plan(struct hli_turn *turn)
{
    struct hli_tenure *tenure = turn->name->current;

    if (!tenure || tenure->state != HLI_TENURE_OWN || turn->now < hli_tag_due(tenure))
        return;
    if (tag_format(tenure, turn->now) < 0) {
        tenure->tag->shows_at = hli_after_ms(turn->now, TAG_SHOW_MS);
        return;
    }
    tenure->tag->is_shown = true;
    tenure->tag->shows_at = hli_after_ms(turn->now, TAG_AGAIN_MS);
    hli_turn_ask(turn, tenure, HLI_ASKING_TAG);
}

bool hli_tag_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                      const struct hli_answer *answer)
{
    int64_t status = 0;

    if (answer->verdict == HLI_REPLIED)
        return hli_reply_integer_at(answer->reply, 0, &status) && status == 1;
    if (answer->verdict == HLI_BOUNCED) {
        tenure->tag->shows_at = turn->now;
    } else if (answer->verdict == HLI_FAILED) {
        tenure->tag->shows_at = 0; /* it may not be written here */
    } else {
        tenure->tag->shows_at = hli_after_ms(turn->now, TAG_RETRY_MS);
    }
    return true;
}

/* A number and the space behind it. */
static bool tag_read_number(const char **text, int64_t *ret_number)
{
    char *end;

    *ret_number = strtoll(*text, &end, 10);
    if (end == *text || *end != ' ')
        return false;
    *text = end + 1;
    return true;
}

/* "field owner since_ms pid host thread"; the last may have spaces, or be empty. */
void hli_tag_read(const char *text, const char *holder, int64_t server_ms, hl_lock_info *info)
{
    size_t length = strlen(holder);
    int64_t owner = 0, since_ms = 0, pid = 0;

    if (length == 0 || strncmp(text, holder, length) != 0 || text[length] != ' ')
        return;
    text += length + 1;
    if (!tag_read_number(&text, &owner) || !tag_read_number(&text, &since_ms) ||
        !tag_read_number(&text, &pid))
        return;
    size_t host = strcspn(text, " ");
    if (host == 0)
        return;
    info->pid = pid;
    info->held_ms = since_ms > 0 && server_ms > since_ms ? server_ms - since_ms : 0;
    snprintf(info->host, sizeof(info->host), "%.*s", (int)host, text);
    snprintf(info->thread, sizeof(info->thread), "%s", text[host] == ' ' ? text + host + 1 : "");
}

void hli_tag_read_own(const struct hli_tenure *tenure, hli_ns now, hl_lock_info *info)
{
    const char *self = tenure->name->client->self, *host = strchr(self, ' ');

    info->pid = strtoll(self, NULL, 10);
    info->held_ms = (now - tenure->hold.began) / 1000000;
    snprintf(info->host, sizeof(info->host), "%s", host ? host + 1 : "");
    snprintf(info->thread, sizeof(info->thread), "%s", tenure->tag->thread);
}
