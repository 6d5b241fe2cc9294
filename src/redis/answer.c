/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Error replies, sorted by their first word. Inside a script Redis 7 and later keep the word of the
 * inner error; Redis 6 puts "ERR Error running script (call to f_...): @user_script:12:
 * @user_script: 12: -" in front of it, and a part of that where the script passes the error on. Its
 * own refusals by ACL begin with ERR, and their wording changes between versions: so an error
 * without a word of its own is searched for a known part.
 */
#include "redis/answer.h"

#include <stddef.h>
#include <string.h>

/* Texts that replace those of Redis which do not say what the user can do. */
static const char answer_says_denied[] =
    "NOPERM the user may not run a command of the script, or not with this key or channel; "
    "ACL LOG names it";
static const char answer_says_login[] =
    "NOAUTH the server wants a password: give it, and the user, in the URL or in the options";
static const char answer_says_type[] =
    "WRONGTYPE the key holds a value of another kind: another program uses it";

static const struct answer_kind {
    const char *text; /* the first words, or a part */
    enum hli_verdict verdict;
    int code;
    const char *says; /* replaces the server's text; NULL: keep that */
    hl_reason reason; /* for the statistics; HL_REASON_OTHER: that of the code */
} answer_words[] = {
    {"NOSCRIPT", HLI_BOUNCED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"NOPERM", HLI_FAILED, HL_EDENIED, NULL, HL_REASON_DENIED},
    {"NOAUTH", HLI_FAILED, HL_EDENIED, answer_says_login, HL_REASON_DENIED},
    {"WRONGPASS", HLI_FAILED, HL_EDENIED, NULL, HL_REASON_DENIED},
    {"DENIED", HLI_FAILED, HL_EDENIED, NULL, HL_REASON_DENIED},
    {"NOPROTO", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"WRONGTYPE Operation against a key", HLI_FAILED, HL_ESERVER, answer_says_type,
     HL_REASON_WRONGTYPE},
    {"WRONGTYPE", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_WRONGTYPE},
    {"CROSSSLOT", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"MOVED", HLI_BOUNCED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"ASK", HLI_BOUNCED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"HIRELOCK", HLI_FAILED, HL_EINVAL, NULL, HL_REASON_OTHER},
    {"LOADING", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_LOADING},
    {"BUSY", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_SCRIPT},
    {"READONLY", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_READONLY},
    {"OOM", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_OOM},
    {"NOREPLICAS", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_NOREPLICAS},
    {"MISCONF", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_MISCONF},
    {"MASTERDOWN", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_DOWN},
    {"CLUSTERDOWN", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_DOWN},
    {"TRYAGAIN", HLI_REFUSED, HL_ESERVER, NULL, HL_REASON_OTHER},
};

static const struct answer_kind answer_parts[] = {
    {"can't run this command", HLI_FAILED, HL_EDENIED, answer_says_denied, HL_REASON_OTHER},
    {"ACL failure in script", HLI_FAILED, HL_EDENIED, answer_says_denied, HL_REASON_OTHER},
    {"can't access at least one of the keys", HLI_FAILED, HL_EDENIED, answer_says_denied,
     HL_REASON_OTHER},
    {"NOPERM", HLI_FAILED, HL_EDENIED, NULL, HL_REASON_OTHER},
    {"No permissions", HLI_FAILED, HL_EDENIED, NULL, HL_REASON_OTHER},
    {"WRONGTYPE", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_WRONGTYPE},
    {"unknown command", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"would overflow", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_OTHER},
    {"not an integer", HLI_FAILED, HL_ESERVER, NULL, HL_REASON_OTHER},
};

/* Any other error may come from the middle of a script: the effects of that run are not known, but
 * a later copy does no harm. */
static const struct answer_kind answer_unknown = {"", HLI_REFUSED, HL_ESERVER, NULL,
                                                  HL_REASON_OTHER};

static bool answer_begins(const char *text, const char *words)
{
    size_t length = strlen(words);

    return strncmp(text, words, length) == 0 && (text[length] == ' ' || text[length] == '\0');
}

bool hli_answer_is(const struct hli_answer *answer, const char *word)
{
    return answer->text && answer_begins(answer->text, word);
}

bool hli_answer_is_known(const struct hli_answer *answer)
{
    for (size_t i = 0; i < sizeof(answer_words) / sizeof(answer_words[0]); i++)
        if (hli_answer_is(answer, answer_words[i].text))
            return true;
    return false;
}

/* Skips the text that Redis 6 puts in front of an error inside a script. */
static const char *answer_inner(const char *text)
{
    static const char at[] = "user_script:";
    const char *inner = text;

    if (!answer_begins(text, "ERR Error running script") && text[0] != '@')
        return text;
    for (const char *next = text; (next = strstr(next, at)); inner = next) {
        next += strlen(at);
        next += strspn(next, " 0123456789:");
    }
    return inner[0] == '-' ? inner + 1 : inner;
}

static const struct answer_kind *answer_kind_of(const char *text)
{
    for (size_t i = 0; i < sizeof(answer_words) / sizeof(answer_words[0]); i++)
        if (answer_begins(text, answer_words[i].text))
            return &answer_words[i];
    for (size_t i = 0; i < sizeof(answer_parts) / sizeof(answer_parts[0]); i++)
        if (strstr(text, answer_parts[i].text))
            return &answer_parts[i];
    return &answer_unknown;
}

struct hli_answer hli_answer_from(const struct hli_reply *reply)
{
    if (reply->is_beyond)
        return (struct hli_answer){.verdict = HLI_FAILED,
                                   .code = HL_EPROTO,
                                   .text = "an answer that is larger than any honest one"};
    if (reply->kind != HLI_REPLY_ERROR)
        return (struct hli_answer){.verdict = HLI_REPLIED, .reply = reply};
    const char *text = answer_inner(reply->text);
    const struct answer_kind *kind = answer_kind_of(text);
    bool has_begun = text != reply->text; /* and may have written before this error */
    return (struct hli_answer){.verdict = has_begun && kind->verdict == HLI_BOUNCED ? HLI_REFUSED
                                                                                    : kind->verdict,
                               .code = kind->code,
                               .text = kind->says ? kind->says : text};
}

/* Parts of errors that have no code word of their own, behind one. */
static const char *answer_denial(const char *text)
{
    static const char *const denials[] = {
        "ERR invalid password",     "ERR invalid username-password",     "ERR no password is set",
        "ERR without any password", "ERR wrong number of arguments for", "ERR unknown command"};
    const size_t word = strlen("ERR ");

    for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++)
        if (strncmp(text, denials[i], word) == 0 && strstr(text, denials[i] + word))
            return denials[i];
    return NULL;
}

bool hli_answer_denies_login(const struct hli_answer *answer)
{
    static const char *const words[] = {"WRONGPASS", "NOAUTH", "NOPERM", "DENIED"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (hli_answer_is(answer, words[i]))
            return true;
    return answer->text && answer_denial(answer->text);
}

void hli_answer_hide(struct hli_answer *answer, const char *secret)
{
    enum { TELLTALE = 16 };
    const size_t words = sizeof(answer_words) / sizeof(answer_words[0]);
    char beginning[TELLTALE + 1] = "";

    if (!answer->text || !secret || !secret[0])
        return;
    memcpy(beginning, secret, strnlen(secret, TELLTALE));
    bool repeats = strstr(answer->text, beginning) != NULL;
    explicit_bzero(beginning, sizeof(beginning));
    if (!repeats)
        return;
    const char *denial = answer_denial(answer->text), *shown = denial ? denial : "ERR";
    for (size_t i = 0; i < words; i++)
        if (answer_begins(answer->text, answer_words[i].text))
            shown = answer_words[i].text;
    answer->text = shown;
}

/* The word of the server that the text begins with, or that follows where it was met: "connect
 * 10.0.0.3:6379: LOADING ...". */
static hl_reason answer_reason_in(const char *text)
{
    for (const char *at = text; at; at = strstr(at, ": ")) {
        at += at != text ? 2 : 0;
        for (size_t i = 0; i < sizeof(answer_words) / sizeof(answer_words[0]); i++)
            if (answer_words[i].reason != HL_REASON_OTHER &&
                answer_begins(at, answer_words[i].text))
                return answer_words[i].reason;
    }
    return HL_REASON_OTHER;
}

static hl_reason answer_reason_of(int code)
{
    static const struct {
        int code;
        hl_reason reason;
    } reasons[] = {
        {HL_EBUSY, HL_REASON_BUSY},         {HL_ETIMEDOUT, HL_REASON_TIMEOUT},
        {HL_ECANCELED, HL_REASON_CANCELED}, {HL_ENOTOWNER, HL_REASON_MISUSE},
        {HL_ELOST, HL_REASON_LOST},         {HL_EINDOUBT, HL_REASON_IN_DOUBT},
        {HL_EFENCED, HL_REASON_FENCED},     {HL_EINVAL, HL_REASON_MISUSE},
        {HL_ENOMEM, HL_REASON_MEMORY},      {HL_ECONN, HL_REASON_UNREACHABLE},
        {HL_EPROTO, HL_REASON_UNREACHABLE}, {HL_ESERVER, HL_REASON_SERVER},
        {HL_EDENIED, HL_REASON_DENIED},     {HL_ECLOSED, HL_REASON_MISUSE},
        {HL_EDEADLK, HL_REASON_DEADLOCK},   {HL_EFORKED, HL_REASON_MISUSE},
        {HL_ENOTSUP, HL_REASON_MISUSE},     {HL_EREPLICAS, HL_REASON_REPLICAS},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].code == code)
            return reasons[i].reason;
    return HL_REASON_OTHER;
}

hl_reason hli_answer_reason(int code, const char *text)
{
    bool is_of_server = code == HL_ESERVER || code == HL_EINDOUBT;
    hl_reason reason = is_of_server ? answer_reason_in(text) : HL_REASON_OTHER;

    return reason != HL_REASON_OTHER ? reason : answer_reason_of(code);
}

const char *hli_answer_advice(const char *text)
{
    return strstr(text, "NOPERM ") ? " (hirelock acl prints the rule)" : "";
}
