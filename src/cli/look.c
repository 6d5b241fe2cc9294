/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/look.h"

#include "cli/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * KEYS name tag queue fair token ids
 * reply {type, pttl, now_ms, waiters, token, tag, mode, size, value, available, fair, queued_ms,
 *        field, count, ...}
 *
 * type is "other" for a hash that is no lock. Of a hash up to 32 fields are told, of a string the
 * first bytes. The user needs the rights to all six keys. What a command of the script is denied
 * or finds of another type is as if not there. The score of the queue is the time of arrival in
 * microseconds, or of a sign of life beyond 4e15 (lua/sign.lua); those of a fair lock's tell none.
 */
const char cli_look_script[] =
    "local name, tag, queue, fair, token, ids = unpack(KEYS)\n"
    "local call, time = redis.pcall, redis.call('TIME')\n"
    "local now = time[1] .. string.sub('00000' .. time[2], -6, -4)\n"
    "local kind = redis.call('TYPE', name).ok\n"
    "local function text(reply, most)\n"
    "  return type(reply) == 'string' and string.sub(reply, 1, most) or false\n"
    "end\n"
    "local function count(reply) return type(reply) == 'number' and reply or 0 end\n"
    "local function is_owner(field)\n"
    "  if #field > 80 or string.byte(field, 37) ~= 58 then return false end\n"
    "  local ending = string.match(field, '^[%x-]+:%-?%d+(:?%l*)$')\n"
    "  return ending == '' or ending == ':write' or ending == ':rest'\n"
    "end\n"
    "local fairs = count(call('LLEN', fair))\n"
    "local waiters = count(call('ZCOUNT', queue, '-inf', '(4000000000000000')) + fairs\n"
    "local first = tonumber(call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] or '')\n"
    "local queued = first and first < 4e15 and (time[1] * 1000000 + time[2] - first) / 1000\n"
    "local fences = call('GET', token)\n"
    "local reply = {kind, redis.call('PTTL', name), now, waiters, text(fences, 24),\n"
    "  text(call('GET', tag), 512), false, 0, false, 0, fairs,\n"
    "  fairs == 0 and queued and math.max(0, queued) or -1}\n"
    "if kind == 'string' then\n"
    "  reply[9] = text(call('GETRANGE', name, 0, 79), 80)\n"
    "  reply[8] = count(call('ZCOUNT', ids, '(' .. now, '+inf'))\n"
    "  reply[10] = count(call('ZCARD', ids))\n"
    "end\n"
    "if kind ~= 'hash' then return reply end\n"
    "reply[8] = redis.call('HLEN', name)\n"
    "local fields = call('HRANDFIELD', name, 32)\n"
    "if fields.err then fields = reply[8] <= 32 and redis.call('HKEYS', name) or {} end\n"
    "for _, field in ipairs(fields) do\n"
    "  local value = #field <= 80 and redis.call('HGET', name, field) or ''\n"
    "  local is_mode = field == 'mode' and (value == 'read' or value == 'write')\n"
    "  if not is_mode and not (is_owner(field) and string.find(value, '^%-?%d+$')) then\n"
    "    return {'other'}\n"
    "  end\n"
    "  if not is_mode then\n"
    "    reply[#reply + 1] = field\n"
    "    reply[#reply + 1] = string.sub(value, 1, 20)\n"
    "  end\n"
    "end\n"
    "reply[7] = text(call('HGET', name, 'mode'), 5)\n"
    "return reply\n";

/* Places in the reply. */
enum {
    LOOK_TYPE,
    LOOK_PTTL,
    LOOK_NOW,
    LOOK_WAITERS,
    LOOK_TOKEN,
    LOOK_TAG,
    LOOK_MODE,
    LOOK_SIZE,  /* fields of a hash; permits that are out */
    LOOK_VALUE, /* of a string */
    LOOK_PERMITS,
    LOOK_FAIR,
    LOOK_QUEUED,
    LOOK_FIELDS
};

static void key_append(char key[CLI_LOOK_KEY], size_t *used, const char *bytes, size_t length)
{
    memcpy(key + *used, bytes, length);
    *used += length;
}

size_t cli_name_derive(const struct cli_name *name, const char *first, const char *last,
                       char key[CLI_LOOK_KEY])
{
    size_t braces = memchr(name->bytes, '{', name->length) ? 0 : 1, used = 0;
    size_t begins = strlen(first), ends = strlen(last);

    if (begins + name->length + 2 * braces + ends > CLI_LOOK_KEY)
        return 0;
    key_append(key, &used, first, begins);
    key_append(key, &used, "{", braces);
    key_append(key, &used, name->bytes, name->length);
    key_append(key, &used, "}", braces);
    key_append(key, &used, last, ends);
    return used;
}

static void look_word(struct cli_look *look, const char *word, size_t length)
{
    size_t at = look->command.word_count++;

    look->words[at] = word;
    look->lengths[at] = length;
}

bool cli_look_begin(struct cli_look *look, const struct cli_name *name, const char *sha)
{
    static const char *const beside[][2] = {{"hirelock_holder:", ""},
                                            {"hirelock_queue:", ""},
                                            {"redisson_lock_queue:", ""},
                                            {"redisson_lock_token:", ""},
                                            {"", ":timeout"}};

    look->command = (hl_command)HL_COMMAND_INIT;
    look->command.flags = HL_COMMAND_READS;
    look->command.words = look->words;
    look->command.lengths = look->lengths;
    look->command.key = name->bytes;
    look->command.key_length = name->length;
    look_word(look, sha ? "EVALSHA" : "EVAL", sha ? 7 : 4);
    look_word(look, sha ? sha : cli_look_script, strlen(sha ? sha : cli_look_script));
    look_word(look, "6", 1);
    look_word(look, name->bytes, name->length);
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        size_t length = cli_name_derive(name, beside[i][0], beside[i][1], look->keys[i]);
        if (length == 0)
            return false;
        look_word(look, look->keys[i], length);
    }
    return true;
}

const hl_reply *cli_reply_text(const hl_reply *reply, size_t at)
{
    if (!reply || reply->kind != HL_REPLY_ARRAY || at >= reply->element_count)
        return NULL;
    const hl_reply *text = reply->elements[at];
    return text->kind == HL_REPLY_TEXT || text->kind == HL_REPLY_STATUS ? text : NULL;
}

long long cli_reply_number(const hl_reply *reply, size_t at)
{
    const hl_reply *text = cli_reply_text(reply, at);

    if (text)
        return strtoll(text->text, NULL, 10);
    if (!reply || reply->kind != HL_REPLY_ARRAY || at >= reply->element_count)
        return 0;
    return reply->elements[at]->integer;
}

static bool look_is(const hl_reply *reply, size_t at, const char *text)
{
    const hl_reply *is = cli_reply_text(reply, at);

    return is && strcmp(is->text, text) == 0;
}

static void look_add(json_object *lock, const char *key, long long number)
{
    json_object_object_add(lock, key, json_object_new_int64(number));
}

static void look_add_text(json_object *lock, const char *key, const char *bytes, size_t length)
{
    json_object_object_add(lock, key, cli_escaped(bytes, length));
}

/* In UTC (ISO 8601); empty for a time that no calendar has. */
static void look_write_time(long long ms, char text[CLI_TIME])
{
    time_t seconds = (time_t)(ms / 1000);
    char day[CLI_TIME / 2];
    struct tm utc;

    text[0] = '\0';
    if (gmtime_r(&seconds, &utc) && strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) > 0)
        snprintf(text, CLI_TIME, "%s.%03lldZ", day, ms % 1000);
}

static void look_add_since(json_object *lock, long long since_ms)
{
    char text[CLI_TIME];

    look_write_time(since_ms, text);
    json_object_object_add(lock, "since", json_object_new_string(text));
}

/* "field owner since_ms pid host thread"; the last may have spaces, or be empty. */
void cli_look_add_tag(json_object *lock, const hl_reply *tag, const hl_reply *field,
                      long long now_ms)
{
    if (!tag || !field || tag->length <= field->length ||
        memcmp(tag->text, field->text, field->length) != 0 || tag->text[field->length] != ' ')
        return;
    char *at = NULL;
    long long owner = strtoll(tag->text + field->length, &at, 10);
    long long since_ms = strtoll(at, &at, 10), pid = strtoll(at, &at, 10);
    if (since_ms <= 0 || *at != ' ')
        return;
    size_t host = strcspn(at + 1, " ");
    const char *thread = at + 1 + host;
    look_add_text(lock, "host", at + 1, host);
    look_add(lock, "pid", pid);
    look_add(lock, "owner_number", owner);
    look_add_since(lock, since_ms);
    if (thread[0] == ' ' && thread[1])
        look_add_text(lock, "thread", thread + 1, strlen(thread + 1));
    look_add(lock, "held_ms", now_ms > since_ms ? now_ms - since_ms : 0);
}

static const char *look_string(json_object *lock, const char *key)
{
    json_object *value;

    return json_object_object_get_ex(lock, key, &value) ? json_object_get_string(value) : NULL;
}

/* For people: "web-1 4711 worker", or the field when no tag says more. */
static void look_add_holder(json_object *lock, long long owners)
{
    char text[512], more[48] = "";
    const char *host = look_string(lock, "host"), *thread = look_string(lock, "thread");
    const char *owner = look_string(lock, "owner"), *pid = look_string(lock, "pid");

    if (owners > 1)
        snprintf(more, sizeof(more), " and %lld more", owners - 1);
    if (host)
        snprintf(text, sizeof(text), "%s %s%s%s%s", host, pid, thread ? " " : "",
                 thread ? thread : "", more);
    else
        snprintf(text, sizeof(text), "%s%s", owner ? owner : "nobody: it rests", more);
    json_object_object_add(lock, "holder", json_object_new_string(text));
}

static const char *look_kind(const hl_reply *reply)
{
    if (look_is(reply, LOOK_MODE, "read"))
        return "read lock";
    if (look_is(reply, LOOK_MODE, "write"))
        return "write lock";
    if (cli_reply_number(reply, LOOK_FAIR) > 0)
        return "fair lock";
    return cli_reply_text(reply, LOOK_TOKEN) ? "fenced lock" : "lock";
}

static bool look_ends(const hl_reply *field, const char *ending)
{
    size_t length = strlen(ending);

    return field->length > length &&
           memcmp(field->text + field->length - length, ending, length) == 0;
}

/* The owner to be named: the writer rather than its own reader, and none that has released. */
static size_t look_best(const hl_reply *reply)
{
    size_t best = 0;

    for (size_t at = LOOK_FIELDS; at + 1 < reply->element_count; at += 2) {
        const hl_reply *field = cli_reply_text(reply, at);
        bool rests = !field || look_ends(field, ":rest") || cli_reply_number(reply, at + 1) < 1;
        if (!rests && (best == 0 || look_ends(field, ":write")))
            best = at;
    }
    return best;
}

static void look_read_hash(json_object *lock, const hl_reply *reply)
{
    size_t best = look_best(reply);
    long long fields =
        cli_reply_number(reply, LOOK_SIZE) - (cli_reply_text(reply, LOOK_MODE) != NULL);
    const hl_reply *field = best ? cli_reply_text(reply, best) : NULL;

    json_object_object_add(lock, "kind", json_object_new_string(look_kind(reply)));
    if (field)
        look_add_text(lock, "owner", field->text, field->length);
    cli_look_add_tag(lock, cli_reply_text(reply, LOOK_TAG), field,
                     cli_reply_number(reply, LOOK_NOW));
    look_add(lock, "levels", best ? cli_reply_number(reply, best + 1) : 0);
    look_add(lock, "owners", best ? fields : 0);
    look_add(lock, "waiters", cli_reply_number(reply, LOOK_WAITERS));
    if (cli_reply_number(reply, LOOK_QUEUED) >= 0)
        look_add(lock, "queued_ms", cli_reply_number(reply, LOOK_QUEUED));
    if (cli_reply_text(reply, LOOK_TOKEN))
        look_add_text(lock, "token_counter", cli_reply_text(reply, LOOK_TOKEN)->text,
                      cli_reply_text(reply, LOOK_TOKEN)->length);
    look_add_holder(lock, best ? fields : 0);
    if (best == 0)
        look_add(lock, "rest_left_ms", cli_reply_number(reply, LOOK_PTTL));
}

/* Only permits have a key of their own beside the number. */
static void look_read_string(json_object *lock, const hl_reply *reply)
{
    const hl_reply *value = cli_reply_text(reply, LOOK_VALUE);
    bool is_permits = cli_reply_number(reply, LOOK_PERMITS) > 0;
    char holder[48], digits[24];

    if (is_permits) {
        long long out = cli_reply_number(reply, LOOK_SIZE);
        json_object_object_add(lock, "kind", json_object_new_string("permits"));
        look_add(lock, "owners", out);
        look_add(lock, "available", cli_reply_number(reply, LOOK_VALUE));
        snprintf(holder, sizeof(holder), "%lld permits are out", out);
        json_object_object_add(lock, "holder", json_object_new_string(holder));
        return;
    }
    long long number = value ? strtoll(value->text, NULL, 10) : 0;
    snprintf(digits, sizeof(digits), "%lld", number);
    bool is_number = value && value->length == strlen(digits) &&
                     memcmp(digits, value->text, value->length) == 0; /* not 007, not 10^30 */
    json_object_object_add(lock, "kind", json_object_new_string(is_number ? "number" : "value"));
    if (is_number)
        look_add(lock, "available", number);
    else if (value)
        look_add_text(lock, "holder", value->text, value->length);
}

json_object *cli_look_read(const struct cli_name *name, const hl_reply *reply)
{
    bool is_hash = look_is(reply, LOOK_TYPE, "hash"),
         is_string = look_is(reply, LOOK_TYPE, "string");

    if (!is_hash && !is_string)
        return NULL;
    json_object *lock = json_object_new_object();
    if (!lock)
        return NULL;
    look_add_text(lock, "name", name->bytes + name->prefix, name->length - name->prefix);
    if (is_hash)
        look_read_hash(lock, reply);
    else
        look_read_string(lock, reply);
    look_add(lock, "lease_left_ms", cli_reply_number(reply, LOOK_PTTL));
    look_add(lock, "now_ms", cli_reply_number(reply, LOOK_NOW));
    return lock;
}

static int look_fail(const struct cli_name *name, const hl_reply *reply, hl_error *err)
{
    const hl_reply *type = cli_reply_text(reply, LOOK_TYPE);
    json_object *shown = cli_escaped(name->bytes, name->length);
    bool is_hash = look_is(reply, LOOK_TYPE, "other");

    snprintf(err->text, sizeof(err->text), "'%.100s' is no lock, but %s%.20s",
             json_object_get_string(shown), is_hash ? "another program's hash" : "a ",
             is_hash || !type ? "" : type->text);
    json_object_put(shown);
    return HL_EINVAL;
}

int cli_look(hl_client *client, const struct cli_name *name, json_object **ret_lock, hl_error *err)
{
    char time[CLI_TIME];

    return cli_look_at(client, name, ret_lock, time, err);
}

int cli_look_at(hl_client *client, const struct cli_name *name, json_object **ret_lock,
                char time[CLI_TIME], hl_error *err)
{
    struct cli_look *look = malloc(sizeof(*look));
    hl_reply *reply = NULL;
    int rc = HL_ENOMEM;

    *ret_lock = NULL;
    if (look && cli_look_begin(look, name, NULL))
        rc = hl_client_command(client, &look->command, &reply, err);
    else
        snprintf(err->text, sizeof(err->text), "the name is too long");
    if (rc == 0)
        *ret_lock = cli_look_read(name, reply);
    if (rc == 0 && !*ret_lock && !look_is(reply, LOOK_TYPE, "none"))
        rc = look_fail(name, reply, err);
    look_write_time(cli_reply_number(reply, LOOK_NOW), time);
    hl_reply_free(reply);
    free(look);
    err->code = rc;
    return rc;
}

char *cli_name_make(const struct cli_server *server, const char *word, struct cli_name *ret_name)
{
    const char *prefix = server->prefix ? server->prefix : "";
    size_t begins = strlen(prefix), length = begins + strlen(word);
    char *bytes = malloc(length + 1);

    if (!bytes)
        return NULL;
    snprintf(bytes, length + 1, "%s%s", prefix, word);
    *ret_name = (struct cli_name){bytes, length, begins};
    return bytes;
}
