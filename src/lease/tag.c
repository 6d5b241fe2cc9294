/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/* Tags: when they are written, and what they say. */
#include "lease/tag.h"

#include "lease/ask.h"
#include "lease/command.h"
#include "lease/deepen.h"
#include "lease/loss.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    TAG_SHOW_MS = 20,       /* a hold that is shorter is not tagged; so old is no word for a pass */
    TAG_RETRY_MS = 1000,    /* after a refusal, and while the link is down */
    TAG_STANDS_MS = 300000, /* after its hold nobody takes it away: it expires */
    TAG_AGAIN_MS = 120000,  /* so it is written again */
};

/* A host's name has no space, but that is the administrator's word. */
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
    return (name->client->settings.flags & HL_CLIENT_TAGS) != 0;
}

bool hli_tag_is_wanted(const struct hli_name *name)
{
    return name->kind->is_tagged && tag_has_client(name);
}

struct hli_bytes hli_tag_key(const struct hli_name *name, char text[HLI_CHANNEL_SIZE])
{
    const struct hli_kind *kind = name->kind;
    bool is_told = kind->is_tagged || (kind->sister && kind->sister->is_tagged);

    if (!is_told || !tag_has_client(name))
        return hli_bytes_of("");
    return (struct hli_bytes){text, hli_name_write(name, HLI_NAME_TAG, text)};
}

struct hli_tag *hli_tag_new(const struct hli_name *name)
{
    struct hli_tag *tag = hli_tag_is_wanted(name) ? calloc(1, sizeof(*tag)) : NULL;

    if (tag)
        prctl(PR_GET_NAME, tag->thread);
    return tag;
}

struct hli_tag *hli_tag_again(const struct hli_tag *tag)
{
    struct hli_tag *again = tag ? calloc(1, sizeof(*again)) : NULL;

    if (again)
        memcpy(again->thread, tag->thread, sizeof(again->thread));
    return again;
}

void hli_tag_begin(struct hli_turn *turn, struct hli_tenure *tenure, struct hli_tag *tag)
{
    free(tenure->tag);
    tenure->tag = tag;
    if (tag)
        tag->shows_at = hli_after_ms(turn->now, TAG_SHOW_MS);
}

hli_ns hli_tag_due(const struct hli_tenure *tenure)
{
    return tenure->tag && tenure->tag->shows_at != 0 ? tenure->tag->shows_at : HLI_NEVER;
}

bool hli_tag_is_shown(const struct hli_tenure *tenure)
{
    return tenure->tag && tenure->tag->is_shown;
}

static int tag_format(struct hli_tenure *tenure, hli_ns now)
{
    const struct hli_name *name = tenure->name;
    char field[HLI_FIELD_SIZE], key[HLI_CHANNEL_SIZE], held[HLI_NUMBER_SIZE];
    char words[sizeof(name->client->self) + HLI_TAG_THREAD], stands[HLI_NUMBER_SIZE];
    const struct hli_bytes keys[] = {hli_command_key(tenure),
                                     hli_command_derived(tenure, HLI_NAME_TAG, key)};

    snprintf(words, sizeof(words), "%s %s", name->client->self, tenure->tag->thread);
    const struct hli_bytes args[] = {hli_bytes_of(hli_tenure_field(tenure, field)),
                                     hli_command_number(held, (now - tenure->hold.began) / 1000000),
                                     hli_bytes_of(words),
                                     hli_command_number(stands, TAG_STANDS_MS)};

    return hli_op_script(&tenure->ask, HLI_SCRIPT_LOCK_TAG,
                         &(struct hli_script_words){keys, 2, args, 4});
}

static void tag_plan(struct hli_turn *turn, struct hli_tenure *tenure, int64_t in_ms)
{
    tenure->tag->shows_at = hli_after_ms(turn->now, in_ms);
    hli_turn_watch(turn, tenure, tenure->tag->shows_at);
}

/* Whatever else is being asked goes first. */
void hli_tag_look(struct hli_turn *turn, struct hli_tenure *tenure)
{
    if (turn->now < hli_tag_due(tenure))
        return;
    if (tenure->asking != HLI_ASKING_NOTHING || tag_format(tenure, turn->now) < 0) {
        tag_plan(turn, tenure, TAG_SHOW_MS);
        return;
    }
    tenure->tag->is_shown = true;
    tenure->tag->shows_at = hli_after_ms(turn->now, TAG_AGAIN_MS);
    hli_ask_send(turn, tenure, HLI_ASKING_TAG);
}

void hli_tag_answered(struct hli_turn *turn, struct hli_tenure *tenure,
                      const struct hli_answer *answer)
{
    int64_t status = 0;

    if (answer->verdict == HLI_REPLIED) {
        hli_reply_integer_at(answer->reply, 0, &status);
        if (status != 1) {
            hli_loss_of_key(turn, tenure);
            return;
        }
    } else if (answer->verdict == HLI_BOUNCED) {
        tag_plan(turn, tenure, 0);
    } else if (answer->verdict == HLI_FAILED) {
        tenure->tag->shows_at = 0; /* it may not be written here */
    } else {
        tag_plan(turn, tenure, TAG_RETRY_MS);
    }
    hli_deepen_go(turn, tenure);
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

/* "field since_ms pid host thread"; the last may have spaces, or be empty. */
bool hli_tag_read(const char *text, const char *holder, int64_t server_ms,
                  struct hli_holder *ret_holder)
{
    size_t length = strlen(holder);
    int64_t since_ms = 0, pid = 0;

    if (length == 0 || strncmp(text, holder, length) != 0 || text[length] != ' ')
        return false;
    text += length + 1;
    if (!tag_read_number(&text, &since_ms) || !tag_read_number(&text, &pid))
        return false;
    size_t host = strcspn(text, " ");
    if (host == 0)
        return false;
    *ret_holder = (struct hli_holder){
        .pid = pid, .held_ms = since_ms > 0 && server_ms > since_ms ? server_ms - since_ms : 0};
    snprintf(ret_holder->host, sizeof(ret_holder->host), "%.*s", (int)host, text);
    snprintf(ret_holder->thread, sizeof(ret_holder->thread), "%s",
             text[host] == ' ' ? text + host + 1 : "");
    return true;
}

void hli_tag_read_own(const struct hli_tenure *tenure, hli_ns now, struct hli_holder *ret_holder)
{
    const char *self = tenure->name->client->self, *host = strchr(self, ' ');

    *ret_holder = (struct hli_holder){.pid = strtoll(self, NULL, 10),
                                      .held_ms = (now - tenure->hold.began) / 1000000};
    snprintf(ret_holder->host, sizeof(ret_holder->host), "%s", host ? host + 1 : "");
    snprintf(ret_holder->thread, sizeof(ret_holder->thread), "%s", tenure->tag->thread);
}

void hli_tag_tell(const struct hli_holder *holder, hl_lock_info *info)
{
    memcpy(info->host, holder->host, sizeof(info->host));
    memcpy(info->thread, holder->thread, sizeof(info->thread));
    info->pid = holder->pid;
    info->held_ms = holder->held_ms;
}
