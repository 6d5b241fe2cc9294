/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Error replies, sorted by their first word. Inside a script Redis 7 and later keep the word of the
 * inner error; Redis 6 says "ERR Error running script ...: @user_script: 12: -NOPERM ..."; and a
 * refusal by ACL says "ERR The user executing the script can't run this command" on 7.0. So after
 * the first word the text is searched for what it cannot tell itself.
 */
#include "redis/answer.h"

#include <string.h>

static const struct answer_word {
    const char *word;
    enum hli_verdict verdict;
    int code;
} answer_words[] = {
    {"NOSCRIPT", HLI_BOUNCED, HL_ESERVER},    {"NOPERM", HLI_FAILED, HL_EDENIED},
    {"NOAUTH", HLI_FAILED, HL_EDENIED},       {"WRONGPASS", HLI_FAILED, HL_EDENIED},
    {"DENIED", HLI_FAILED, HL_EDENIED},       {"NOPROTO", HLI_FAILED, HL_ESERVER},
    {"WRONGTYPE", HLI_FAILED, HL_ESERVER},    {"CROSSSLOT", HLI_FAILED, HL_ESERVER},
    {"HIRELOCK", HLI_FAILED, HL_EINVAL},      {"LOADING", HLI_REFUSED, HL_ESERVER},
    {"BUSY", HLI_REFUSED, HL_ESERVER},        {"READONLY", HLI_REFUSED, HL_ESERVER},
    {"OOM", HLI_REFUSED, HL_ESERVER},         {"NOREPLICAS", HLI_REFUSED, HL_ESERVER},
    {"MISCONF", HLI_REFUSED, HL_ESERVER},     {"MASTERDOWN", HLI_REFUSED, HL_ESERVER},
    {"CLUSTERDOWN", HLI_REFUSED, HL_ESERVER}, {"TRYAGAIN", HLI_REFUSED, HL_ESERVER},
};

static bool answer_begins(const char *text, const char *word)
{
    size_t length = strlen(word);

    return strncmp(text, word, length) == 0 && (text[length] == ' ' || text[length] == '\0');
}

bool hli_answer_is(const struct hli_answer *answer, const char *word)
{
    return answer->text && answer_begins(answer->text, word);
}

static void answer_sort(struct hli_answer *answer)
{
    const size_t words = sizeof(answer_words) / sizeof(answer_words[0]);

    for (size_t i = 0; i < words; i++) {
        if (!answer_begins(answer->text, answer_words[i].word))
            continue;
        answer->verdict = answer_words[i].verdict;
        answer->code = answer_words[i].code;
        return;
    }
    /* Some other error may come from the middle of a script: what it did is not known, but no later
     * copy is harmed by it. */
    answer->verdict = HLI_REFUSED;
    answer->code = HL_ESERVER;
    if (strstr(answer->text, "can't run this command") ||
        strstr(answer->text, "ACL failure in script") ||
        strstr(answer->text, "can't access at least one of the keys") ||
        strstr(answer->text, "NOPERM") || strstr(answer->text, "No permissions")) {
        answer->verdict = HLI_FAILED;
        answer->code = HL_EDENIED;
    } else if (strstr(answer->text, "WRONGTYPE") || strstr(answer->text, "unknown command") ||
               strstr(answer->text, "would overflow") || strstr(answer->text, "not an integer")) {
        answer->verdict = HLI_FAILED;
    }
}

struct hli_answer hli_answer_from(const struct hli_reply *reply)
{
    struct hli_answer answer = {.verdict = HLI_REPLIED, .reply = reply};

    if (reply->kind == HLI_REPLY_ERROR) {
        answer.reply = NULL;
        answer.text = reply->text;
        answer_sort(&answer);
    }
    return answer;
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
    const char *shown = "ERR";
    for (size_t i = 0; i < words; i++)
        if (answer_begins(answer->text, answer_words[i].word))
            shown = answer_words[i].word;
    answer->text = shown;
}
