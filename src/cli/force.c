/* SPDX-FileCopyrightText: hirelock contributors */
/* SPDX-License-Identifier: MIT */
#include "cli/force.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *force_text(json_object *lock, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(lock, key));

    return text ? text : "";
}

/* Of a string that is a number, its number is the owner's token. */
static const char *force_holder(json_object *lock)
{
    const char *holder = force_text(lock, "holder");

    return holder[0] ? holder : force_text(lock, "available");
}

static bool force_is(const struct cli_force *force, const char *kind)
{
    return strcmp(force_text(force->lock, "kind"), kind) == 0;
}

static bool force_is_string(const struct cli_force *force)
{
    return force_is(force, "value") || force_is(force, "number");
}

/* The error says "'NAME' ..."; returns the code. */
__attribute__((format(printf, 4, 5))) static int force_refuse(const struct cli_force *force,
                                                              hl_error *err, int code,
                                                              const char *format, ...)
{
    char why[sizeof(err->text)];
    va_list words;

    va_start(words, format);
    vsnprintf(why, sizeof(why), format, words);
    va_end(words);
    *err = (hl_error)HL_ERROR_INIT;
    err->code = code;
    snprintf(err->text, sizeof(err->text), "'%.100s' %.150s", force_text(force->lock, "name"), why);
    return code;
}

bool cli_force_may(const struct cli_force *force, hl_error *why)
{
    if (force_is(force, "permits"))
        return force_refuse(force, why, HL_EINVAL,
                            "has permits; each is given back by its id, by a program "
                            "(hl_permits_release())") == 0;
    if (force_is_string(force) && !force->has_values)
        return force_refuse(force, why, HL_EINVAL,
                            "is a string, which may be a lock by SET NX or anything else; "
                            "--classic says that it is a lock") == 0;
    return true;
}

void cli_force_who(const struct cli_force *force, char text[CLI_FORCE_WHO])
{
    json_object *lock = force->lock;
    const char *owner = force_text(lock, "owner"), *waiters = force_text(lock, "waiters");
    const char *since = force_text(lock, "since"), *holder = force_holder(lock);
    bool has_owner = owner[0] && !strstr(holder, owner);

    snprintf(text, CLI_FORCE_WHO, "'%s' (%s) is held by %s%s%s%s%s%s%s%s", force_text(lock, "name"),
             force_text(lock, "kind"), holder, has_owner ? ", " : "", has_owner ? owner : "",
             since[0] ? ", since " : "", since, waiters[0] ? "; " : "", waiters,
             waiters[0] ? " waiting" : "");
}

/* A handle of the right kind. Returns a code of the library. */
static int force_handle(const struct cli_force *force, hl_lock **ret_lock, hl_error *err)
{
    const char *name = force->name.bytes + force->name.prefix;
    hl_lock_options options = HL_LOCK_OPTIONS_INIT;

    if (force_is_string(force))
        return hl_redlock_new(&force->client, 1, name, ret_lock, err);
    if (force_is(force, "read lock"))
        options.kind = HL_LOCK_READ;
    else if (force_is(force, "write lock"))
        options.kind = HL_LOCK_WRITE;
    else if (force_is(force, "fair lock"))
        options.kind = HL_LOCK_FAIR;
    options.name = name;
    options.name_length = force->name.length - force->name.prefix;
    return hl_lock_new_with(force->client, &options, ret_lock, err);
}

int cli_force(const struct cli_force *force, hl_error *err)
{
    hl_lock *lock = NULL;
    int rc = force_handle(force, &lock, err);

    if (rc == 0)
        rc = hl_lock_force_release(lock, err);
    hl_lock_free(lock);
    if (rc == HL_ENOENT)
        force_refuse(force, err, rc, "was released meanwhile");
    return rc;
}

int cli_force_look_again(const struct cli_force *force, hl_error *err)
{
    json_object *now = NULL;
    int rc = cli_look(force->client, &force->name, &now, err);
    bool is_same = now && strcmp(force_holder(now), force_holder(force->lock)) == 0 &&
                   strcmp(force_text(now, "owner"), force_text(force->lock, "owner")) == 0;

    if (rc == 0 && !is_same)
        rc = force_refuse(force, err, HL_ENOENT,
                          "has another owner by now, or none; nothing was done");
    json_object_put(now);
    return rc;
}
